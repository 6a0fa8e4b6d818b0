// softmax(L)·V where the logits L are not products of queries and keys alone: a learned matrix, the
// outer product of two rows that each position makes, or products plus a matrix. Strips of rows,
// never an n×n buffer. 2·n²·d FLOPs, with products 4·n²·d, the softmax besides.
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

// logit of query i and key j: left[i, j mod a]·right[i, j / a]; left [batch, heads, len, a], right
// [batch, heads, len, c], a·c >= len.
Var outer_attention(const Var& left, const Var& right, const Var& v, const Mask& mask);

// Of the attention alone: the pool's peak is the output and the workspace.
Cost synthetic_cost(const AttentionShape& shape, bool products = false);

// The first `len` rows of x [heads, max_len, cols] for every batch entry: [batch, heads, len,
// cols].
Var rows_for_batch(const Var& x, int64_t batch, int64_t len);

}  // namespace attn
