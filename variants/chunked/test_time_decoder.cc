// Decoding of test_time_training(): a step adds its gradient to the sums of the mini-batch, and the
// last step of the mini-batch trains the state with them. 8·d² FLOPs.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/chunked/head_decoder.h"
#include "variants/chunked/test_time_training.h"

namespace attn {
namespace {

class TrainingDecoder final : public HeadDecoder {
 public:
  TrainingDecoder(const Shape& position, int64_t capacity, const TrainingWeights& weights,
                  double factor)
      : HeadDecoder(position, capacity, {1}),
        heads_(position[1]),
        mini_batch_(weights.token_rates.dim(0)),
        factor_(static_cast<real>(factor)),
        weights_(weights),
        states_(Tensor::zeros({heads(), 2, state_reals()})),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {
    const int64_t dim = head_dim();
    for (int64_t head = 0; head < heads(); ++head) {
      real* const state = states_.data() + head * 2 * state_reals();
      const int64_t own = head % heads_ * dim;
      std::copy_n(weights.weights.value().data() + own * dim, dim * dim, state);
      std::copy_n(weights.bias.value().data() + own, dim, state + dim * dim);
    }
  }

 private:
  int64_t state_reals() const { return head_dim() * (head_dim() + 1); }  // W, then b
  int64_t work_reals() const { return padded_reals(5 * head_dim() + 2); }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t dim = head_dim(), square = dim * dim, own = head % heads_ * dim;
    const int64_t in_batch = (appended() + i) % mini_batch_;
    real* const state = states_.data() + head * 2 * state_reals();
    real *const sums = state + state_reals(), *const bias = state + square;
    real* const work = static_cast<real*>(work_.data()) + head * work_reals();
    real *const z = work, *const error = z + dim, *const grad = error + dim;
    real *const scaled = grad + dim, *const unused = scaled + dim, *const stats = unused + dim;
    const real *const gain = weights_.gain.value().data() + own, *const shift =
                                                                     weights_.shift.value().data() +
                                                                     own;
    const real token_rate = weights_.token_rates.value()[in_batch];
    const real rate = factor_ / (1 + std::exp(-gates()[0].data()[head * gates()[0].dim(2) + i]));
    const auto epsilon = static_cast<real>(kTrainingEpsilon);
    const auto model = [&](const real* x, real* to) {  // x·W + b
      std::copy_n(bias, dim, to);
      add_product(1, dim, dim, {x, dim}, {state, dim}, to, dim);
      done.multiply_adds(square);
    };
    model(k, z);
    layer_norm_rows(1, dim, z, gain, shift, epsilon, error, stats);
    for (int64_t c = 0; c < dim; ++c) error[c] += k[c] - v[c], scaled[c] = rate * k[c];
    std::fill_n(unused, dim, real(0));
    layer_norm_rows_backward(1, dim, z, stats, error, gain, grad, false, unused, unused);
    add_product(dim, dim, 1, {scaled, 1}, {grad, dim}, sums, dim);
    for (int64_t c = 0; c < dim; ++c) sums[square + c] += rate * grad[c];
    done.multiply_adds(square);
    if (q) {
      model(q, z);
      for (int64_t c = 0; c < dim; ++c)
        scaled[c] = -token_rate * q[c], z[c] -= token_rate * sums[square + c];
      add_product(1, dim, dim, {scaled, dim}, {sums, dim}, z, dim);
      done.multiply_adds(square);
      layer_norm_rows(1, dim, z, gain, shift, epsilon, out, nullptr);
      for (int64_t c = 0; c < dim; ++c) out[c] += q[c];
    }
    done.moved<real>(4 * state_reals());
    if (in_batch + 1 < mini_batch_) return;
    const int64_t count = state_reals();
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < count; ++c) state[c] -= token_rate * sums[c];
    std::fill_n(sums, count, real(0));
  }

  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override {
    return 8 * static_cast<double>(heads() * head_dim() * head_dim());
  }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  int64_t heads_;  // of one sequence
  int64_t mini_batch_;
  real factor_;
  TrainingWeights weights_;
  Tensor states_;  // W and b, then the sums of their gradients [heads, 2, d² + d]
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> training_decoder(const Shape& position, int64_t capacity,
                                          const TrainingWeights& weights, double factor) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<TrainingDecoder>(position, capacity, weights, factor);
}

}  // namespace attn
