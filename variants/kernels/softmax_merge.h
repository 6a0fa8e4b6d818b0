// Sums of softmax attention over different keys of one query, brought together: Σ 2^(logit - top)
// times values and the same without values, its mass. Online softmax, 2·dim FLOPs a merge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/product.h"
#include "core/kernels/softmax_rows.h"
#include "core/real.h"

namespace attn {

// Of no visible key, top is -inf, and the sums are 0.
struct RowSums {
  real* sum = nullptr;  // [dim]
  real top = -kInfinity, mass = 0;
};

// More keys of the query: `count` logits in units of log2, and as many rows [count, dim] of values.
// `logits` is overwritten, and has room for a whole multiple of kRowMultiple.
inline void add_keys(int64_t count, real* logits, const real* values, int64_t dim, RowSums& into) {
  const int64_t padded = (count + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  std::fill(logits + count, logits + padded, -kInfinity);
  real shrink = 1;
  soften_rows(1, padded, logits, padded, &into.top, &into.mass, &shrink);
  add_product(1, dim, count, {logits, count}, {values, dim}, into.sum, dim, &shrink);
}

inline void merge_row(int64_t dim, const RowSums& from, RowSums& into) {
  const real top = from.top <= into.top ? into.top : from.top;  // so written, a NaN wins
  const auto weight = [top](real t) { return t == -kInfinity ? real(0) : std::exp2(t - top); };
  const real mine = weight(into.top), theirs = weight(from.top);
  for (int64_t c = 0; c < dim; ++c) into.sum[c] = into.sum[c] * mine + from.sum[c] * theirs;
  into.mass = into.mass * mine + from.mass * theirs;
  into.top = top;
}

// out = sum / mass; a query that sees nothing gets its sum, zeros.
inline void divide_row(int64_t dim, const real* sum, real mass, real* out) {
  const real factor = mass == 0 ? real(1) : 1 / mass;
  for (int64_t c = 0; c < dim; ++c) out[c] = sum[c] * factor;
}

}  // namespace attn
