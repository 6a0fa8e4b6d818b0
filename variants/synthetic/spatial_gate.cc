// Composed from ops; a decode step reads a row of the matrix and the rows so far. See
// spatial_gate.h.
#include "variants/synthetic/spatial_gate.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "variants/synthetic/position_mixture.h"

namespace attn {
namespace {

struct Halves {
  Var residual, normed;  // [batch, len, units]; the second becomes the gate
};
Halves halves_of(const Var& x, const SpatialGateWeights& w) {
  const Var hidden = gelu(linear(x, w.in, w.in_bias));
  const int64_t units = w.gain.dim(0);
  return {slice(hidden, 2, 0, units),
          layer_norm(slice(hidden, 2, units, 2 * units), w.gain, w.shift)};
}

// W·rows + b, as [batch, len, units].
Var mixed_rows(const Var& rows, const SpatialGateWeights& w, bool causal) {
  const int64_t batch = rows.dim(0), len = rows.dim(1), units = rows.dim(2);
  const Var mixed = position_mixture(w.spatial, rows, causal);
  const Var bias = matmul(slice(w.spatial_bias, 0, 0, len), Var(Tensor::full({1, units}, 1)));
  return reshape(add(reshape(mixed, {batch, 1, len, units}), bias), mixed.shape());
}

class SpatialGateDecoder final : public Decoder {
 public:
  SpatialGateDecoder(const Shape& position, int64_t capacity, const SpatialGateWeights& weights)
      : Decoder(position, capacity),
        batch_(position[0]),
        width_(position[1] * position[3]),
        units_(weights.gain.dim(0)),
        weights_(weights),
        rows_({batch_, capacity, units_}) {}

 private:
  void put(const Tensor& normed) const {
    const int64_t size = normed.dim(1) * units_;
    for (int64_t b = 0; b < batch_; ++b)
      std::copy_n(normed.data() + b * size, size,
                  rows_.data() + (b * capacity() + length()) * units_);
  }
  void do_extend(const Tensor&, const Tensor& v) override {
    const NoGrad no_grad;
    put(halves_of(merge_heads(Var(v)), weights_).normed.value());
  }
  void do_step(const real*, const real*, const real* v, real* out) override {
    const NoGrad no_grad;
    const Tensor x({batch_, 1, width_}), gate({batch_, 1, units_});
    std::copy_n(v, x.size(), x.data());
    const Halves halves = halves_of(Var(x), weights_);
    put(halves.normed.value());
    const int64_t count = length() + 1, longest = weights_.spatial.dim(0);
    const real* const row = weights_.spatial.value().data() + length() * longest;
    const real bias = weights_.spatial_bias.value()[length()];
    for (int64_t b = 0; b < batch_; ++b)
      for (int64_t c = 0; c < units_; c += kPanel) {
        const int64_t cols = std::min(kPanel, units_ - c);
        real* const to = gate.data() + b * units_ + c;
        std::fill_n(to, cols, bias);
        add_product(1, cols, count, {row, longest},
                    {rows_.data() + b * capacity() * units_ + c, units_}, to, units_);
      }
    const Var answer =
        linear(multiply(halves.residual, Var(gate)), weights_.out, weights_.out_bias);
    std::copy_n(answer.value().data(), x.size(), out);
    Tally done;
    done.multiply_adds(batch_ * count * units_);
    done.moved<real>(moved());
  }

  int64_t moved() const {
    return batch_ * (length() + 2) * units_ + length() + 1 + 3 * width_ * units_;
  }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * rows_.size();
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(batch_ * units_ * (length() + 1 + 3 * width_));
  }
  double do_step_bytes() const override { return sizeof(real) * static_cast<double>(moved()); }

  int64_t batch_, width_, units_;
  SpatialGateWeights weights_;
  Tensor rows_;  // [batch, capacity, units]
};

}  // namespace

Var spatial_gate(const Var& x, const SpatialGateWeights& w, const Mask& mask) {
  Halves halves = halves_of(zero_padding(x, mask.kv_lengths), w);
  // The norm of a row of zeros is its shift.
  halves.normed = zero_padding(halves.normed, mask.kv_lengths);
  halves.normed = mixed_rows(halves.normed, w, mask.causal);
  const Var gated = multiply(halves.residual, halves.normed);
  return zero_padding(linear(gated, w.out, w.out_bias), mask.kv_lengths);
}

std::unique_ptr<Decoder> spatial_gate_decoder(const Shape& position, int64_t capacity,
                                              const SpatialGateWeights& weights) {
  ATTN_CHECK(capacity <= weights.spatial.dim(0), "gmlp was built for {} positions, got {}",
             weights.spatial.dim(0), capacity);
  return std::make_unique<SpatialGateDecoder>(position, capacity, weights);
}

}  // namespace attn
