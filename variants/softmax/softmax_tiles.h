// The problem and the tile operations that the forward and the backward of tiled softmax attention
// share: sizes, masks, scaled queries, products with packed keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/base/dtype.h"
#include "core/base/marks.h"
#include "core/simd/rounded_product.h"
#include "variants/softmax/band.h"
#include "variants/softmax/logit_bias.h"

namespace attn {

// Sizes and mask. The fields from `left` to `removed` are those of Band.
struct SoftmaxProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  double scale = 1;
  int64_t left = -1, right = -1;
  bool causal = false;
  int64_t global = 0;
  RemovedKeys removed = {};
  IndexList kv_lengths = {};
  std::shared_ptr<const BlockPattern> pattern = {};
  Dtype dtype = Dtype::float32;                // of q, k, v and out
  std::shared_ptr<const LogitBias> bias = {};  // null: none

  Band band(int64_t batch_index) const {
    const int64_t length =
        kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(batch_index)];
    return {q_len, kv_len, length, left, right, causal, global, removed};
  }
};

// Whether the forward packs all keys first: several blocks of queries see each key, and the runs of
// keys start at a panel.
inline bool packs_ahead(const SoftmaxProblem& p) {
  return p.pattern && p.left < 0 && p.pattern->size % kPanel == 0 &&
         p.pattern->keys.size() > 2 * p.pattern->begin.size();
}

// The factor of the queries: scale·log2(e), since logits are in units of log2.
inline real query_factor(const SoftmaxProblem& p) { return real(p.scale * 1.4426950408889634); }

inline void scale_rows_to(const real* from, int64_t size, real factor, real* to) {
  for (int64_t i = 0; i < size; ++i) to[i] = from[i] * factor;
}

inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
inline int64_t round_down(int64_t n, int64_t multiple) { return n / multiple * multiple; }

// Computes the given columns of a·b, where b is packed; writes column j to c + j. columns.begin
// need not be the first column of a panel.
inline void packed_columns(int64_t rows, Span columns, int64_t depth, Left a, const real* panels,
                           real* c, int64_t c_row) {
  const int64_t from = columns.begin, to = columns.end;
  const int64_t border = std::min(to, round_up(from, kPanel));
  if (from < border)
    mixed_product(rows, border - from, depth, a,
                  {panels + from / kPanel * kPanel * depth + from % kPanel, kPanel}, c + from,
                  c_row);
  if (border < to)
    mixed_product(rows, to - border, depth, a, packed(panels + border * depth, depth), c + border,
                  c_row);
}

// Sets an entry (r, c) of x, c in [from, to), to `value` where query i + r does not see key first +
// c or the key is not one of `keys`.
inline void mask_outside_band(const Band& band, int64_t i, int64_t rows, Span keys, int64_t first,
                              int64_t from, int64_t to, real* x, int64_t stride, real value) {
  const Mark mark(Part::masks);
  for (int64_t r = 0; r < rows; ++r) {
    real* const row = x + r * stride;
    int64_t seen = from;  // columns before this one are done
    const auto keep = [&](Span span) {
      const int64_t begin = std::clamp(std::max(span.begin, keys.begin) - first, seen, to);
      const int64_t end = std::clamp(std::min(span.end, keys.end) - first, begin, to);
      if (begin >= end) return;
      std::fill(row + seen, row + begin, value);
      seen = end;
    };
    keep(band.global_keys(i + r));
    keep({band.begin(i + r), band.end(i + r)});
    std::fill(row + seen, row + to, value);
    if (band.removed.keys == 0) continue;
    const Span removed = band.removed.of(i + r);
    const int64_t begin = std::clamp(removed.begin - first, from, to);
    std::fill(row + begin, row + std::clamp(removed.end - first, begin, to), value);
  }
}

}  // namespace attn
