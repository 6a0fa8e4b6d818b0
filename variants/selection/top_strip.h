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
static_assert(kTopPiece % kPanel == 0);

// acc = Σ w·relu(x), for one row; `first` overwrites it.
inline void add_index_scores(int64_t cols, const real* x, real weight, bool has_relu, bool first,
                             real* acc) {
  const real least = has_relu ? real(0) : -kInfinity;
  if (first)
    for (int64_t j = 0; j < cols; ++j) acc[j] = weight * (x[j] > least ? x[j] : least);
  else
    for (int64_t j = 0; j < cols; ++j) acc[j] += weight * (x[j] > least ? x[j] : least);
}

// The keys of one row in the order of their places; returns how many.
inline int64_t take_top(TopList& list, int32_t* places) {
  finish_top(list);
  for (int64_t e = 0; e < list.size; ++e) places[e] = static_cast<int32_t>(list.places[e]);
  return list.size;
}

}  // namespace attn
