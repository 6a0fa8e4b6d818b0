// Composed from ops and the constant scan; see moving_average.h.
#include "variants/scans/moving_average.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "variants/scans/constant_scan.h"

namespace attn {
namespace {

// Adds the valid rows of each sequence, the last one first.
void add_reversed(const Tensor& from, std::span<const int64_t> lengths, const Tensor& to) {
  const Mark mark(Part::elementwise);
  const int64_t len = from.dim(1), width = from.dim(2);
  for (int64_t b = 0; b < from.dim(0); ++b) {
    const int64_t valid = lengths.empty() ? len : lengths[static_cast<size_t>(b)];
    for (int64_t t = 0; t < valid; ++t) {
      const real* const row = from.data() + (b * len + valid - 1 - t) * width;
      real* const sum = to.data() + (b * len + t) * width;
      for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
    }
  }
}

Var reversed(const Var& x, const std::vector<int64_t>& lengths) {
  const Tensor out = Tensor::zeros(x.shape());
  add_reversed(x.value(), lengths, out);
  const std::vector<int64_t, Recycled<int64_t>> kept(lengths.begin(), lengths.end());
  return custom_op(out, {x}, [kept](const Tensor& grad, std::span<Tensor> grads) {
    add_reversed(grad, kept, grads[0]);
  });
}

// [batch, len, width]; the scan takes all channels as one head.
Var averaged(const Var& x, const AverageWeights& weights, const std::vector<int64_t>& lengths) {
  const Var rows = reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)});
  return reshape(constant_scan(rows, average_taps(weights), lengths), x.shape());
}

}  // namespace

Var average_taps(const AverageWeights& w) {
  const int64_t states = w.step.dim(0), width = w.step.dim(1);
  const Var step = sigmoid(w.step);
  const Var factor = shift(scale(multiply(step, sigmoid(w.damping)), -1), 1);
  const Var read = scale(multiply(multiply(step, w.input), w.output),
                         1 / std::sqrt(static_cast<double>(states)));
  const Var none(Tensor::zeros(w.step.shape()));  // the poles are real
  const Var parts[] = {factor, none, read, none};
  return reshape(concat(parts, 0), {4, 1, states, width});
}

Var moving_average(const Var& x, const std::vector<AverageWeights>& weights,
                   const std::vector<int64_t>& lengths) {
  if (weights.size() == 1) return averaged(x, weights[0], lengths);
  Var back = reversed(x, lengths);
  back = averaged(back, weights[1], lengths);
  back = reversed(back, lengths);
  return add(averaged(x, weights[0], lengths), back);
}

Cost average_cost(const AttentionShape& shape, int64_t states, bool both) {
  AttentionShape one = shape;
  one.heads = 1, one.head_dim = shape.heads * shape.head_dim;
  Cost cost = constant_cost(one, states);
  const double rows = sizeof(real) * static_cast<double>(one.batch * one.kv_len * one.head_dim),
               taps = sizeof(real) * static_cast<double>(states * one.head_dim);
  cost.peak_bytes = std::max(cost.peak_bytes, 8 * taps);  // what makes the taps
  if (!both) return cost;
  cost.flops *= 2, cost.backward_flops *= 2;
  cost.bytes = 2 * cost.bytes + rows;
  cost.peak_bytes = std::max(3 * rows, rows + cost.peak_bytes);
  return cost;
}

}  // namespace attn
