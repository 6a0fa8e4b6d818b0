// How the softmax forward reads queries, keys and values: in `real`, or in bfloat16. A storage
// packs them into a worker's workspace and multiplies them; the tiles and the online softmax of
// softmax_forward.cc are the same for both. Private to the engine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/simd/bfloat16_product.h"
#include "core/simd/product.h"
#include "core/tensor/bfloat16_tensor.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/forward_layout.h"
#include "variants/softmax/softmax_merge.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

// The operands of a product of weights and values: the columns [columns.begin, columns.end) of a
// strip of weights, whose rows are `stride` apart, and the values from row `first` of the piece on.
struct WeightedStrip {
  int64_t rows;
  Span columns;
  int64_t first;  // row of the piece for column 0
  real* weights;
  int64_t stride;
  const real* rescale;  // [rows]
};

// q, k, v and out in `real`. The logits are scaled with the queries; values are read in place.
class RealStorage {
 public:
  using Element = real;
  using Array = Tensor;

  RealStorage(const SoftmaxProblem& p, const ForwardLayout& layout, real* work)
      : p_(p), query_(work + layout.query), keys_(work + layout.keys), panels_(keys_) {}

  static void pack_keys(const real* k, int64_t count, int64_t dim, real* to) {
    pack_transposed(k, count, dim, dim, to);
  }
  void take_queries(const real* q, int64_t rows) {
    scale_rows_to(q, rows * p_.dim, query_factor(p_), query_);
  }
  void take_keys(const real* k, int64_t count) { pack_keys(k, count, p_.dim, keys_); }
  void take_packed(const real* panels, int64_t first) { panels_ = panels + first * p_.dim; }
  void take_values(const real* v, int64_t) { values_ = v; }

  // Logits of query `at` and those behind it, for the given columns; column 0 is key `skip` of the
  // piece, which begins a panel.
  void logits(int64_t at, int64_t rows, Span columns, int64_t skip, real* scores,
              int64_t stride) const {
    packed_columns(rows, columns, p_.dim, {query_ + at * p_.dim, p_.dim, 1},
                   panels_ + skip * p_.dim, scores, stride);
  }
  // sums = rescale · sums + weights · values, [rows, value_dim].
  void add_values(const WeightedStrip& s, real* sums) const {
    add_mixed_product(s.rows, p_.value_dim, s.columns.end - s.columns.begin,
                      {s.weights + s.columns.begin, s.stride, 1},
                      {values_ + (s.first + s.columns.begin) * p_.value_dim, p_.value_dim}, sums,
                      p_.value_dim, s.rescale);
  }
  // The sums of a whole task are kept where the output lies.
  static real* sums_of_task(real* out, real*) { return out; }

 private:
  const SoftmaxProblem& p_;
  real *query_, *keys_;
  const real* panels_;  // the piece's keys, packed
  const real* values_ = nullptr;
};

// q, k, v and out in bfloat16. Keys and values are packed in pairs as they are. Products of queries
// and keys are exact, and their sums, in float32, are scaled. Weights are rounded to bfloat16
// before they are multiplied by values, as in FlashAttention on GPUs (Dao 2023, arXiv:2307.08691);
// their row sums are not. The output is rounded once.
class BFloat16Storage {
 public:
  using Element = BFloat16;
  using Array = BFloat16Tensor;

  BFloat16Storage(const SoftmaxProblem& p, const ForwardLayout& layout, real* work)
      : p_(p),
        pairs_(pairs_of(p.dim)),
        query_(reinterpret_cast<BFloat16Pair*>(work + layout.query)),
        keys_(reinterpret_cast<BFloat16Pair*>(work + layout.keys)),
        values_(reinterpret_cast<BFloat16Pair*>(work + layout.values)),
        panels_(keys_) {}

  static void pack_keys(const BFloat16* k, int64_t count, int64_t dim, real* to) {
    pack_pairs_transposed(k, count, dim, reinterpret_cast<BFloat16Pair*>(to));
  }
  void take_queries(const BFloat16* q, int64_t rows) { pack_pairs(q, rows, p_.dim, query_); }
  void take_keys(const BFloat16* k, int64_t count) {
    pack_pairs_transposed(k, count, p_.dim, keys_);
  }
  void take_packed(const real* panels, int64_t first) {
    panels_ = reinterpret_cast<const BFloat16Pair*>(panels) + first * pairs_;
  }
  void take_values(const BFloat16* v, int64_t count) {
    interleave_rows(v, count, p_.value_dim, values_);
  }

  void logits(int64_t at, int64_t rows, Span columns, int64_t skip, real* scores,
              int64_t stride) const {
    const PairedLeft queries{query_ + at * pairs_, pairs_};
    const BFloat16Pair* const panels = panels_ + skip * pairs_;
    const real factor = query_factor(p_);
    const int64_t from = columns.begin, to = columns.end;
    const int64_t border = std::min(to, round_up(from, kPanel));
    if (from < border)
      paired_product(rows, border - from, pairs_, queries,
                     {panels + from / kPanel * kPanel * pairs_ + from % kPanel, kPanel}, factor,
                     scores + from, stride);
    if (border < to)
      paired_product(rows, to - border, pairs_, queries,
                     {panels + border * pairs_, kPanel, pairs_ * kPanel}, factor, scores + border,
                     stride);
  }
  // A pair at either end may hold one more key. No query of the strip sees it: its weight is 0.
  void add_values(const WeightedStrip& s, real* sums) const {
    const int64_t begin = round_down(s.columns.begin, 2), end = round_up(s.columns.end, 2);
    const PairedLeft weights = round_to_pairs(s.rows, end - begin, s.weights + begin, s.stride);
    add_paired_product(s.rows, p_.value_dim, (end - begin) / 2, weights,
                       {values_ + (s.first + begin) / 2 * p_.value_dim, p_.value_dim}, sums,
                       p_.value_dim, s.rescale);
  }
  static real* sums_of_task(BFloat16*, real* work_sums) { return work_sums; }

 private:
  const SoftmaxProblem& p_;
  int64_t pairs_;
  BFloat16Pair *query_, *keys_, *values_;
  const BFloat16Pair* panels_;
};

}  // namespace attn
