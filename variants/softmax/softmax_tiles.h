// What forward and backward of tiled softmax attention share: sizes, masks, scaled queries, and the
// backward's entry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/simd/product.h"
#include "core/simd/softmax_rows.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/band.h"

namespace attn {

struct SoftmaxProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  double scale = 1;
  int64_t left = -1, right = -1;
  bool causal = false;
  int64_t global = 0;
  RemovedKeys removed = {};
  IndexList kv_lengths = {};
  std::shared_ptr<const BlockPattern> pattern = {};

  Band band(int64_t batch_index) const {
    const int64_t length =
        kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(batch_index)];
    return {q_len, kv_len, length, left, right, causal, global, removed};
  }
};

// Whether all keys are packed before the forward: where each is seen from several blocks of
// queries, and runs of keys begin at a panel.
inline bool packs_ahead(const SoftmaxProblem& p) {
  return p.pattern && p.left < 0 && p.pattern->size % kPanel == 0 &&
         p.pattern->keys.size() > 2 * p.pattern->begin.size();
}

// Logits are in units of log2, so queries are scaled by this.
inline real query_factor(const SoftmaxProblem& p) { return real(p.scale * 1.4426950408889634); }

inline void scale_rows_to(const real* from, int64_t size, real factor, real* to) {
  for (int64_t i = 0; i < size; ++i) to[i] = from[i] * factor;
}

inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
inline int64_t round_down(int64_t n, int64_t multiple) { return n / multiple * multiple; }

// Columns [from, to) of a·b, b packed, where `from` need not begin a panel; column j goes to c + j.
inline void packed_columns(int64_t rows, Span columns, int64_t depth, Left a, const real* panels,
                           real* c, int64_t c_row) {
  const int64_t from = columns.begin, to = columns.end;
  const int64_t border = std::min(to, round_up(from, kPanel));
  if (from < border)
    product(rows, border - from, depth, a,
            {panels + from / kPanel * kPanel * depth + from % kPanel, kPanel}, c + from, c_row);
  if (border < to)
    product(rows, to - border, depth, a, packed(panels + border * depth, depth), c + border, c_row);
}

// Sets what the rows [i, i + rows) do not see of the keys, or what is none of the keys, among the
// columns [from, to) of x to `value`: column c is key `first + c`.
inline void hide(const Band& band, int64_t i, int64_t rows, Span keys, int64_t first, int64_t from,
                 int64_t to, real* x, int64_t stride, real value) {
  for (int64_t r = 0; r < rows; ++r) {
    real* const row = x + r * stride;
    int64_t seen = from;  // columns before this one are done
    const auto show = [&](Span span) {
      const int64_t begin = std::clamp(std::max(span.begin, keys.begin) - first, seen, to);
      const int64_t end = std::clamp(std::min(span.end, keys.end) - first, begin, to);
      if (begin >= end) return;
      std::fill(row + seen, row + begin, value);
      seen = end;
    };
    show(band.global_keys(i + r));
    show({band.begin(i + r), band.end(i + r)});
    std::fill(row + seen, row + to, value);
    if (band.removed.keys == 0) continue;
    const Span removed = band.removed.of(i + r);
    const int64_t begin = std::clamp(removed.begin - first, from, to);
    std::fill(row + begin, row + std::clamp(removed.end - first, begin, to), value);
  }
}

inline void hide(const Band& band, int64_t i, int64_t rows, int64_t first, int64_t from, int64_t to,
                 real* x, int64_t stride, real value) {  // all columns are keys
  hide(band, i, rows, {first + from, first + to}, first, from, to, x, stride, value);
}

// One forward; log_sum [batch, heads, q_len] (undefined: not wanted) as softmax_backward takes it.
void softmax_forward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                     const Tensor& v, const Tensor& out, const Tensor& log_sum);

// FLOPs of one forward and its backward, and the workspace of the forward, by counting tiles and
// strips: the problem's kv_lengths count too.
struct SoftmaxWork {
  double flops = 0, backward_flops = 0, workspace_bytes = 0;
};
SoftmaxWork softmax_work(const SoftmaxProblem& problem);

// Adds the gradients of q, k and v into grads (undefined: not wanted). log_sum is [batch, heads,
// q_len], in units of log2, +inf where a query sees nothing.
void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads);
double softmax_backward_pairs(const Band& band, const BlockPattern* pattern, int64_t head);

}  // namespace attn
