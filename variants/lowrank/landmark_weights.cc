// The weights between landmarks, and what attention through landmarks costs; see landmarks.h.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "core/simd/blocked_product.h"
#include "variants/lowrank/head_convolution.h"
#include "variants/lowrank/landmarks.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// 0 where entry b has both landmarks, else -infinity: the weights of such rows are zeros.
Var landmark_mask(const Shape& logits, std::span<const int64_t> used) {
  const Tensor mask(logits);
  const int64_t m = logits[3];
  for (int64_t i = 0; i < mask.size(); ++i) {
    const int64_t last = used[static_cast<size_t>(i / (m * m * logits[1]))];
    mask[i] = std::max(i % m, i / m % m) < last ? real(0) : -kInfinity;
  }
  return Var(mask);
}

}  // namespace

Var landmark_weights(const Var& of_q, const Var& of_k, std::span<const int64_t> used) {
  const double tau = 1 / std::sqrt(static_cast<double>(of_q.dim(3)));
  const Var logits = matmul(scale(of_q, tau), of_k, false, true);
  const bool all =
      std::all_of(used.begin(), used.end(), [&](int64_t count) { return count == of_q.dim(2); });
  return softmax(all ? logits : add(logits, landmark_mask(logits.shape(), used)));
}

Cost landmark_cost(const AttentionShape& s, int64_t landmarks, int64_t steps, int64_t kernel) {
  const int64_t m = std::min(landmarks, s.kv_len), d = s.head_dim, heads = s.batch * s.heads;
  AttentionShape reading = s, answering = s;
  reading.q_len = answering.kv_len = m;
  const Cost read = softmax_cost(reading), answer = softmax_cost(answering);
  const auto count = static_cast<double>(heads), size = static_cast<double>(sizeof(real));
  const double square = count * static_cast<double>(m * m),
               slots = count * static_cast<double>(m * d),
               rows = count * static_cast<double>(s.kv_len * d);
  const double product = 2 * square * static_cast<double>(d);
  const double inverse =
      count * (steps > 0 ? iterated_inverse_flops(m, steps) : exact_inverse_flops(m, d));
  const double convolution = kernel > 0 ? count * head_convolution_flops(s.kv_len, d, kernel) : 0;
  const double packing =
      size * static_cast<double>(blocked_product_reals(m, m, d, {nullptr, 1, d}));
  const double iterating =
      steps > 0 ? 2 * size * square + static_cast<double>(iterated_inverse_bytes(heads, m)) : 0;
  Cost cost;
  cost.flops = read.flops + answer.flops + inverse + (steps > 0 ? 2 : 1) * product + convolution;
  cost.backward_flops = read.backward_flops + answer.backward_flops + 2 * product +
                        2 * convolution +
                        (steps > 0 ? count * iterated_inverse_backward_flops(m, steps) + 2 * product
                                   : inverse + product);
  cost.bytes = size * (6 * rows + 8 * slots + 4 * square + (kernel > 0 ? 4 * rows : 0));
  cost.peak_bytes = std::max(
      {size * 2 * slots +
           std::max({size * slots + size * square + packing, 2 * size * square, iterating}),
       size * (2 * slots + square) + read.peak_bytes, size * (4 * slots + square),
       size * 2 * slots + answer.peak_bytes, kernel > 0 ? size * (2 * slots + 3 * rows) : 0});
  return cost;
}

}  // namespace attn
