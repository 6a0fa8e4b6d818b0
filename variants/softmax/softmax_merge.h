// Sums of softmax attention over different keys of one query, brought together: Σ 2^(logit - top)
// times values and the same without values, its mass. Online softmax, 2·dim FLOPs a merge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/memory.h"
#include "core/base/real.h"
#include "core/simd/product.h"
#include "core/simd/softmax_rows.h"

namespace attn {

// Of no visible key, top is -inf, and the sums are 0.
struct RowSums {
  real* sum = nullptr;  // [dim]
  real top = -kInfinity, mass = 0;
};

// The same of several queries to the same keys, which are read once for all of them.
struct GroupSums {
  int64_t rows = 1;
  real* sum = nullptr;  // [rows, dim]
  real *top = nullptr, *mass = nullptr;
  real* shrink = nullptr;  // [rows], room for add_keys

  static int64_t reals(int64_t rows, int64_t dim) { return padded_reals(rows * (dim + 3)); }
  // In `reals` numbers at `work`, of no key yet.
  static GroupSums in(real* work, int64_t rows, int64_t dim) {
    real* const rest = work + rows * dim;
    const GroupSums made{rows, work, rest, rest + rows, rest + 2 * rows};
    std::fill_n(made.sum, rows * dim, real(0));
    std::fill_n(made.top, rows, -kInfinity);
    std::fill_n(made.mass, rows, real(0));
    return made;
  }
  RowSums row(int64_t r, int64_t dim) const { return {sum + r * dim, top[r], mass[r]}; }
};

// More keys of the queries: `count` logits of each in units of log2, rows `stride` apart, and as
// many rows [count, dim] of values. `logits` is overwritten; a row has room for a whole multiple of
// kRowMultiple.
inline void add_keys(int64_t count, real* logits, int64_t stride, const real* values, int64_t dim,
                     const GroupSums& into) {
  const int64_t padded = (count + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  for (int64_t r = 0; r < into.rows; ++r)
    std::fill(logits + r * stride + count, logits + r * stride + padded, -kInfinity);
  soften_rows(into.rows, padded, logits, stride, into.top, into.mass, into.shrink);
  add_product(into.rows, dim, count, {logits, stride}, {values, dim}, into.sum, dim, into.shrink);
}

// Of one query.
inline void add_keys(int64_t count, real* logits, const real* values, int64_t dim, RowSums& into) {
  real shrink = 1;
  add_keys(count, logits, count, values, dim, {1, into.sum, &into.top, &into.mass, &shrink});
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
