// The scores of a strip of queries with a piece of keys, and the largest of each query so far; see
// top_attention.h. The forward and the decoders choose by the same products, bit for bit: a sum of
// a product has one order, whatever the number of rows. Internal to selection/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/marks.h"
#include "core/simd/product.h"
#include "core/simd/top_rows.h"

namespace attn {

inline constexpr int64_t kTopPiece = 384;  // keys whose scores are made at once
// Keys whose scores wait for the choice: among so many the first bound lets few others pass.
inline constexpr int64_t kTopSpan = 2048;
static_assert(kTopPiece % kPanel == 0 && kTopSpan % kPanel == 0);

// Adds w·relu(x) + more·relu(y) to `scores`, or overwrites them.
inline void add_two_index_heads(int64_t cols, const real* x, real w, const real* y, real more,
                                real least, bool overwrite, real* scores) {
  const auto above = [least](real a) { return a > least ? a : least; };
  if (overwrite)
    for (int64_t j = 0; j < cols; ++j) scores[j] = w * above(x[j]) + more * above(y[j]);
  else
    for (int64_t j = 0; j < cols; ++j) scores[j] += w * above(x[j]) + more * above(y[j]);
}

// Scores of one query, Σ w·relu(x), of products [index_heads, cols] whose rows are `stride` apart;
// weights null: 1.
inline void index_scores(int64_t cols, int64_t index_heads, const real* products, int64_t stride,
                         const real* weights, bool has_relu, real* scores) {
  const real least = has_relu ? real(0) : -kInfinity;
  const auto weight = [weights](int64_t c) { return weights ? weights[c] : real(1); };
  int64_t c = index_heads % 2;
  if (c > 0)
    for (int64_t j = 0; j < cols; ++j)
      scores[j] = weight(0) * (products[j] > least ? products[j] : least);
  for (; c < index_heads; c += 2) {
    const real* const x = products + c * stride;
    add_two_index_heads(cols, x, weight(c), x + stride, weight(c + 1), least, c == 0, scores);
  }
}

}  // namespace attn
