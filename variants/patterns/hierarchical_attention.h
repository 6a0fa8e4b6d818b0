// Hierarchical attention: exact between near blocks, between means of 2^l positions further away,
// in one softmax where a mean counts as often as it has positions. Zhu and Soricut 2021,
// arXiv:2107.11906, and the authors' code. 18·n·block·d FLOPs; causal 9·n·block·d. Memory n·d.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// q, k and v [batch, heads, len, dim], an even `block`. Level l has cells of 2^l positions in
// blocks of `block` cells. At level 0 a block sees itself and both neighbours, position by
// position; at the others both neighbours, less what the finer level has. Means are those of
// positions that are no padding. A cell has one query: the mean, and padded queries get zeros;
// causal, the first position's, which sees what is left of its block.
Var hierarchical_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                           const Mask& mask);
Cost hierarchical_cost(const AttentionShape& shape, int64_t block);

}  // namespace attn
