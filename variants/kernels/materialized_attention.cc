// Textbook softmax attention: weights [batch, heads, q_len, kv_len] in memory, then a product with
// V. 4·n²·d FLOPs, causal or not. Forward: one n×n matrix a head, masked and normalised where it
// lies; backward: two more.
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "core/ops.h"
#include "core/parallel.h"
#include "variants/kernels/band.h"
#include "variants/kernels/softmax_attention.h"

namespace attn {
namespace {

constexpr int64_t kRows = 64;  // queries of a task

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

// body(head, first row, rows) over blocks of queries.
template <class Body>
void for_blocks(const Tensor& q, const Body& body) {
  const int64_t blocks = (q.dim(2) + kRows - 1) / kRows;
  parallel_for(q.dim(0) * q.dim(1) * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % blocks * kRows;
      body(t / blocks, first, std::min(kRows, q.dim(2) - first));
    }
  });
}

void normalise(real* row, int64_t visible, int64_t size, real scale) {
  std::fill(row + visible, row + size, real(0));
  if (visible == 0) return;
  RowMap logits(row, visible);
  const real top = logits.maxCoeff<Eigen::PropagateNaN>() * scale;
  for (int64_t j = 0; j < visible; ++j) row[j] = fast_exp(row[j] * scale - top);
  logits /= logits.sum();
}

void fill_weights(const Problem& p, const Tensor& weights) {
  for_blocks(p.q, [&](int64_t head, int64_t first, int64_t rows) {
    const Band band = p.band(head);
    auto block = matrix(weights, head).middleRows(first, rows);
    block.leftCols(band.length).noalias() = matrix(p.q, head).middleRows(first, rows) *
                                            matrix(p.k, head).topRows(band.length).transpose();
    for (int64_t r = 0; r < rows; ++r)
      normalise(&block(r, 0), band.end(first + r), p.k.dim(2), p.scale());
    count_flops(2 * static_cast<double>(rows * band.length * p.q.dim(3)));
  });
}

// dS = P∘(dP - P·dP), into `slopes`.
void fill_slopes(const Problem& p, const Tensor& weights, const Tensor& grad,
                 const Tensor& slopes) {
  for_blocks(p.q, [&](int64_t head, int64_t first, int64_t rows) {
    const Band band = p.band(head);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (head * p.q.dim(2) + first + r) * p.k.dim(2),
                    visible = band.end(first + r);
      const ConstRowMap weight(weights.data() + at, visible), from(grad.data() + at, visible);
      RowMap slope(slopes.data() + at, visible);
      slope = weight * (from - (weight * from).sum()) * p.scale();
      std::fill(slopes.data() + at + visible, slopes.data() + at + p.k.dim(2), real(0));
    }
  });
}

void add_gradients(const Problem& p, const Tensor& slopes, std::span<Tensor> grads) {
  parallel_for(p.q.dim(0) * p.q.dim(1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const int64_t length = p.band(head).length;
      const auto slope = matrix(slopes, head).leftCols(length);
      if (grads[0].defined())
        matrix(grads[0], head).noalias() += slope * matrix(p.k, head).topRows(length);
      if (grads[1].defined())
        matrix(grads[1], head).topRows(length).noalias() += slope.transpose() * matrix(p.q, head);
      count_flops(2.0 * (grads[0].defined() + grads[1].defined()) *
                  static_cast<double>(p.q.dim(2) * length * p.q.dim(3)));
    }
  });
}

Var attention_weights(const Var& q, const Var& k, const SoftmaxOptions& options) {
  const Problem p{q.value(), k.value(), options};
  const Tensor weights(q.shape().with(3, k.dim(2)));
  fill_weights(p, weights);
  return custom_op(weights, {q, k}, [p, weights](const Tensor& grad, std::span<Tensor> grads) {
    const MemoryScope scope(Purpose::workspace);
    const Tensor slopes(weights.shape());
    fill_slopes(p, weights, grad, slopes);
    add_gradients(p, slopes, grads);
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
  return {.flops = 4 * pairs * d,
          .bytes = size * (2 * d * (rows + keys) + 2 * pairs),  // the weights are written and read
          .peak_bytes = size * (pairs + rows * d),
          .state_bytes = size * 2 * d * keys};
}

}  // namespace attn
