// What forward and backward of tiled softmax attention share: sizes, masks, scaled queries, and the
// backward's entry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/product.h"
#include "core/kernels/softmax_rows.h"
#include "core/tensor.h"
#include "variants/kernels/band.h"

namespace attn {

struct SoftmaxProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  double scale = 1;
  int64_t left = -1, right = -1;
  std::vector<int64_t> kv_lengths;
  std::shared_ptr<const BlockPattern> pattern;

  Band band(int64_t batch_index) const {
    const int64_t length =
        kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(batch_index)];
    return {q_len, kv_len, length, left, right};
  }
};

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

// Sets what the rows [i, i + rows) do not see among columns [from, to) of x to `value`: column c is
// key `first + c`.
inline void hide(const Band& band, int64_t i, int64_t rows, int64_t first, int64_t from, int64_t to,
                 real* x, int64_t stride, real value) {
  for (int64_t r = 0; r < rows; ++r) {
    real* const row = x + r * stride;
    const int64_t begin = std::clamp(band.begin(i + r) - first, from, to);
    const int64_t end = std::clamp(band.end(i + r) - first, begin, to);
    std::fill(row + from, row + begin, value);
    std::fill(row + end, row + to, value);
  }
}

// Adds the gradients of q, k and v into grads (undefined: not wanted). log_sum is [batch, heads,
// q_len], in units of log2, +inf where a query sees nothing.
void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads);
double softmax_backward_pairs(const Band& band, const BlockPattern* pattern, int64_t head);

}  // namespace attn
