// A learned projection along the sequence: [batch, heads, len, dim] to [batch, heads, rank, dim],
// 2·rank·len·dim FLOPs a head; and the cost of attention to projected keys and values.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// out[b, h] = P[h or 0][:, :length_b] · x[b, h][:length_b]; projection is [heads or 1, rank,
// max_len] with max_len >= len. Rows at or beyond lengths[b] are never read (empty: all are valid).
Var project_sequence(const Var& projection, const Var& x, std::span<const int64_t> lengths = {});

// The cost of softmax attention to `rank` projected rows, including `matrices` projections.
Cost projected_cost(const AttentionShape& shape, int64_t rank, int64_t matrices);

}  // namespace attn
