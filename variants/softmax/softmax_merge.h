// Merging of the softmax attention of one query over disjoint sets of keys. The partial result of a
// set is its maximum logit row_max, row_sum = Σ 2^(logit - row_max), and the sum of its values with
// these weights. Online softmax (arXiv:1805.02867), 2·dim FLOPs a merge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/memory.h"
#include "core/base/real.h"
#include "core/simd/product.h"
#include "core/simd/softmax_rows.h"

namespace attn {

// The partial result of one query. Without a visible key, row_max is -inf and the sums are 0.
struct RowSums {
  real* sum = nullptr;  // [dim]
  real row_max = -kInfinity, row_sum = 0;
};

// The partial results of several queries that read the same keys.
struct GroupSums {
  int64_t rows = 1;
  real* sum = nullptr;  // [rows, dim]
  real *row_max = nullptr, *row_sum = nullptr;
  real* rescale = nullptr;  // [rows], workspace of weigh_keys()

  static int64_t reals(int64_t rows, int64_t dim) { return padded_reals(rows * (dim + 3)); }
  // The result that lies in a workspace of reals() numbers.
  static GroupSums at(real* work, int64_t rows, int64_t dim) {
    real* const rest = work + rows * dim;
    return {rows, work, rest, rest + rows, rest + 2 * rows};
  }
  // An empty result (no key) there.
  static GroupSums in(real* work, int64_t rows, int64_t dim) {
    const GroupSums made = at(work, rows, dim);
    std::fill_n(made.sum, rows * dim, real(0));
    std::fill_n(made.row_max, rows, -kInfinity);
    std::fill_n(made.row_sum, rows, real(0));
    return made;
  }
  RowSums row(int64_t r, int64_t dim) const { return {sum + r * dim, row_max[r], row_sum[r]}; }
};

// Replaces the logits [rows, count] of `count` more keys, in units of log2, rows `stride` apart, by
// their weights, and adds these to row_sum; into.rescale is set. Each row needs space for a
// multiple of kRowMultiple numbers: behind `count` are zeros.
inline void weigh_keys(int64_t count, real* logits, int64_t stride, const GroupSums& into) {
  const int64_t padded = (count + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  for (int64_t r = 0; r < into.rows; ++r)
    std::fill(logits + r * stride + count, logits + r * stride + padded, -kInfinity);
  online_softmax_rows(into.rows, padded, logits, stride, into.row_max, into.row_sum, into.rescale);
}

// The same, and adds their values [count, dim] with these weights to into.sum.
inline void add_keys(int64_t count, real* logits, int64_t stride, const real* values, int64_t dim,
                     const GroupSums& into) {
  weigh_keys(count, logits, stride, into);
  add_product(into.rows, dim, count, {logits, stride}, {values, dim}, into.sum, dim, into.rescale);
}

// The same for one query.
inline void add_keys(int64_t count, real* logits, const real* values, int64_t dim, RowSums& into) {
  real rescale = 1;
  add_keys(count, logits, count, values, dim,
           {1, into.sum, &into.row_max, &into.row_sum, &rescale});
}

inline void merge_row(int64_t dim, const RowSums& from, RowSums& into) {
  const real row_max =
      from.row_max <= into.row_max ? into.row_max : from.row_max;  // in this order, NaN is kept
  const auto weight = [row_max](real t) {
    return t == -kInfinity ? real(0) : std::exp2(t - row_max);
  };
  const real mine = weight(into.row_max), theirs = weight(from.row_max);
  for (int64_t c = 0; c < dim; ++c) into.sum[c] = into.sum[c] * mine + from.sum[c] * theirs;
  into.row_sum = into.row_sum * mine + from.row_sum * theirs;
  into.row_max = row_max;
}

// out = sum / row_sum; zeros for a query that sees no key, whose sum is not read.
inline void divide_row(int64_t dim, const real* sum, real row_sum, real* out) {
  if (row_sum == 0) {
    std::fill_n(out, dim, real(0));
    return;
  }
  const real factor = 1 / row_sum;
  for (int64_t c = 0; c < dim; ++c) out[c] = sum[c] * factor;
}

// The same, rounded to bfloat16.
inline void divide_row(int64_t dim, const real* sum, real row_sum, BFloat16* out) {
  if (row_sum == 0) {
    std::fill_n(out, dim, BFloat16());
    return;
  }
  const real factor = 1 / row_sum;
  for (int64_t c = 0; c < dim; ++c) out[c] = to_bfloat16(static_cast<float>(sum[c] * factor));
}

}  // namespace attn
