// softmax(L)·V with logits L other than q·kᵀ: a learned matrix, the outer product of two vectors of
// each position, or q·kᵀ plus a learned matrix. Computed in strips of rows, without an n×n buffer.
// 2·n²·d FLOPs, 4·n²·d with q·kᵀ, without those of the softmax.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// v [batch, heads, len, dim]. logits [heads, max_len, max_len], max_len >= len.
Var matrix_attention(const Var& logits, const Var& v, const Mask& mask);

// L = q·kᵀ/√dim + bias [heads, max_len, max_len]; q and k as v.
Var biased_attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Mask& mask);

// L_ij = left[i, j mod a]·right[i, j / a]; left [batch, heads, len, a], right
// [batch, heads, len, c], a·c >= len.
Var outer_attention(const Var& left, const Var& right, const Var& v, const Mask& mask);

// The cost of the attention alone; peak bytes are the output and the workspace. `products`: with
// q·kᵀ.
Cost synthetic_cost(const AttentionShape& shape, bool products = false);

// The first `len` rows of x [heads, max_len, cols], repeated for each batch entry: [batch, heads,
// len, cols].
Var rows_for_batch(const Var& x, int64_t batch, int64_t len);

}  // namespace attn
