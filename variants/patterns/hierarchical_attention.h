// Hierarchical attention: exact between near blocks, between means of 2^l positions further away,
// in one softmax where a mean counts as often as it has positions. Zhu and Soricut 2021,
// arXiv:2107.11906. 12·n·block·d FLOPs; causal 2·n·block·(1 + log2(n/block))·d. Memory n·d.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// q, k and v [batch, heads, len, dim]. Level l has blocks of block·2^l positions, each of `block`
// means; a block sees the other one of its pair. At level 0 it sees itself too, position by
// position. Means are those of positions that are no padding. Causal: queries stay single, and the
// later block of a pair sees the earlier one. Else queries are means as well, and padded queries
// get zeros.
Var hierarchical_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                           const Mask& mask);
Cost hierarchical_cost(const AttentionShape& shape, int64_t block);

}  // namespace attn
