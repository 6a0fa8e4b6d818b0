// Textbook softmax attention: weights [batch, heads, q_len, kv_len] in memory, then a product with
// V; see materialized_attention.h. The forward stores one n×n matrix a head and masks and
// normalises it in place; the backward stores two more.
#include "variants/softmax/materialized_attention.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/workers.h"
#include "core/ops/ops.h"
#include "core/simd/blocked_product.h"
#include "core/simd/row_ops.h"
#include "variants/softmax/band.h"

namespace attn {
namespace {

constexpr int64_t kRows = 240;  // queries of a task: packing the keys is a twentieth of its product

struct Problem {
  Tensor q, k;
  SoftmaxOptions options;

  real scale() const {
    return static_cast<real>(options.scale > 0 ? options.scale
                                               : 1 / std::sqrt(static_cast<double>(q.dim(3))));
  }
  Band band(int64_t head) const {
    const int64_t n = k.dim(2);
    const int64_t length =
        options.kv_lengths.empty() ? n : options.kv_lengths[static_cast<size_t>(head / q.dim(1))];
    return {q.dim(2), n, length, -1, options.causal ? int64_t{0} : int64_t{-1}};
  }
};

int64_t tasks_of(int64_t heads, int64_t q_len) { return heads * ((q_len + kRows - 1) / kRows); }

// body(head, first row, rows, work) over blocks of queries; `reals` of work.
template <class Body>
void for_blocks(const Tensor& q, int64_t reals, const Body& body) {
  const int64_t heads = q.dim(0) * q.dim(1), tasks = tasks_of(heads, q.dim(2));
  run_tasks(tasks, reals, [&](int64_t task, real* work) {
    const int64_t blocks = tasks / heads, first = task % blocks * kRows;
    body(task / blocks, first, std::min(kRows, q.dim(2) - first), work);
  });
}

int64_t product_reals(int64_t kv_len, int64_t dim) {
  return blocked_product_reals(kRows, kv_len, dim, {nullptr, 1, dim});
}

const real* rows_of(const Tensor& t, int64_t head, int64_t first = 0) {
  return t.data() + (head * t.dim(2) + first) * t.dim(3);
}

void normalise(real* row, int64_t visible, int64_t size, real scale) {
  std::fill(row + visible, row + size, real(0));
  if (visible == 0) return;
  const real sum = exp_row(visible, row, scale, max_in_row(row, visible) * scale, row);
  for (int64_t j = 0; j < visible; ++j) row[j] /= sum;
}

void fill_weights(const Problem& p, const Tensor& weights) {
  const int64_t keys = p.k.dim(2), d = p.q.dim(3);
  for_blocks(p.q, product_reals(keys, d),
             [&](int64_t head, int64_t first, int64_t rows, real* work) {
               const Band band = p.band(head);
               real* const block = weights.data() + (head * p.q.dim(2) + first) * keys;
               blocked_product(rows, band.length, d, {rows_of(p.q, head, first), d},
                               {rows_of(p.k, head), 1, d}, block, keys, false, work);
               const Mark mark(Part::softmax);
               for (int64_t r = 0; r < rows; ++r)
                 normalise(block + r * keys, band.end(first + r), keys, p.scale());
               count_flops(2 * static_cast<double>(rows * band.length * d));
             });
}

// dS = P∘(dP - P·dP), into `grad_logits`.
void fill_logit_gradients(const Problem& p, const Tensor& weights, const Tensor& grad,
                          const Tensor& grad_logits) {
  const int64_t keys = p.k.dim(2);
  for_blocks(p.q, 0, [&](int64_t head, int64_t first, int64_t rows, real*) {
    const Mark mark(Part::softmax);
    const Band band = p.band(head);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (head * p.q.dim(2) + first + r) * keys, visible = band.end(first + r);
      real* const grad_logit = grad_logits.data() + at;
      softmax_rows_backward(1, visible, weights.data() + at, grad.data() + at, grad_logit);
      for (int64_t j = 0; j < visible; ++j) grad_logit[j] *= p.scale();
      std::fill(grad_logit + visible, grad_logit + keys, real(0));
    }
  });
}

void add_gradients(const Problem& p, const Tensor& grad_logits, std::span<Tensor> grads) {
  const int64_t n = p.q.dim(2), keys = p.k.dim(2), d = p.q.dim(3);
  const int64_t reals = std::max(blocked_product_reals(n, d, keys, {nullptr, d}),
                                 blocked_product_reals(keys, d, n, {nullptr, d}));
  run_tasks(p.q.dim(0) * p.q.dim(1), reals, [&](int64_t head, real* work) {
    const int64_t length = p.band(head).length;
    const real* const grad_logit = grad_logits.data() + head * n * keys;
    if (grads[0].defined())
      blocked_product(n, d, length, {grad_logit, keys}, {rows_of(p.k, head), d},
                      grads[0].data() + head * n * d, d, true, work);
    if (grads[1].defined())
      blocked_product(length, d, n, {grad_logit, 1, keys}, {rows_of(p.q, head), d},
                      grads[1].data() + head * keys * d, d, true, work);
    count_flops(2.0 * (grads[0].defined() + grads[1].defined()) *
                static_cast<double>(n * length * d));
  });
}

Var attention_weights(const Var& q, const Var& k, const SoftmaxOptions& options) {
  const Problem p{q.value(), k.value(), options};
  const Tensor weights(q.shape().with(3, k.dim(2)));
  fill_weights(p, weights);
  return custom_op(weights, {q, k}, [p, weights](const Tensor& grad, std::span<Tensor> grads) {
    const MemoryScope scope(Purpose::workspace);
    const Tensor grad_logits(weights.shape());
    fill_logit_gradients(p, weights, grad, grad_logits);
    add_gradients(p, grad_logits, grads);
  });
}

}  // namespace

Var materialized_attention(const Var& q, const Var& k, const Var& v,
                           const SoftmaxOptions& options) {
  ATTN_CHECK(options.window < 0, "materialized attention has no windows, got one of {}",
             options.window);
  ATTN_CHECK(!options.pattern, "materialized attention has no patterns, got one of blocks of {}",
             options.pattern->size);
  return matmul(attention_weights(q, k, options), zero_padding(v, options.kv_lengths));
}

Cost materialized_cost(const AttentionShape& shape) {
  const double rows = static_cast<double>(shape.batch * shape.heads * shape.q_len),
               d = static_cast<double>(shape.head_dim);
  const double keys = static_cast<double>(shape.batch * shape.heads * shape.kv_len),
               size = sizeof(real);
  const double pairs = rows * static_cast<double>(shape.kv_len);
  // Of the product of queries and keys; the output is made when that is gone.
  const double work =
      static_cast<double>(workspace_bytes(tasks_of(shape.batch * shape.heads, shape.q_len),
                                          product_reals(shape.kv_len, shape.head_dim)));
  return {.flops = 4 * pairs * d,
          .bytes = size * (2 * d * (rows + keys) + 2 * pairs),  // the weights are written and read
          .peak_bytes = size * pairs + std::max(size * rows * d, work),
          .state_bytes = size * 2 * d * keys};
}

}  // namespace attn
