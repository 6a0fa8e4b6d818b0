// Softmax attention with the best approximation of its weights of a given rank: the largest
// singular values of the n×n weights of each head (Eckart and Young 1936, Psychometrika 1(3)).
// About 22·n³ FLOPs a head, in double.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// q, k, v [batch, heads, len, dim]. Positions at or beyond lengths[b] (empty: all are valid) are
// neither keys nor queries: their outputs are zeros. Where singular values on both sides of the cut
// are equal, the gradient is one of many.
Var truncated_attention(const Var& q, const Var& k, const Var& v, int64_t rank,
                        std::span<const int64_t> lengths = {});
Cost truncated_cost(const AttentionShape& shape, int64_t rank);

}  // namespace attn
