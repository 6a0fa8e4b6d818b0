// Projections by ops; a decode step reads the cache once. See gated_unit.h.
#include "variants/scores/gated_unit.h"

#include <algorithm>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

Var silu(const Var& x) { return multiply(x, sigmoid(x)); }

// [batch, len, cols] as one head.
Var one_head(const Var& x) { return reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)}); }

class GatedUnitDecoder final : public Decoder {
 public:
  GatedUnitDecoder(const Shape& position, int64_t capacity, const GatedUnitWeights& weights)
      : Decoder(position, capacity),
        batch_(position[0]),
        width_(position[1] * position[3]),
        base_(weights.base.dim(1)),
        units_(weights.value.dim(1)),
        weights_(weights),
        keys_({batch_, capacity, base_}),
        values_({batch_, capacity, units_}) {}

 private:
  void put(const GatedUnitRows& rows) const {
    const int64_t len = rows.q.dim(2);
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * capacity() + length();
      std::copy_n(rows.k.value().data() + b * len * base_, len * base_, keys_.data() + at * base_);
      std::copy_n(rows.v.value().data() + b * len * units_, len * units_,
                  values_.data() + at * units_);
    }
  }
  void do_extend(const Tensor&, const Tensor& v) override {
    const NoGrad no_grad;
    put(gated_unit_rows(merge_heads(Var(v)), weights_));
  }
  void do_step(const real*, const real*, const real* v, real* out) override {
    const NoGrad no_grad;
    const Tensor x({batch_, 1, width_});
    std::copy_n(v, x.size(), x.data());
    const GatedUnitRows rows = gated_unit_rows(Var(x), weights_);
    put(rows);
    const int64_t count = length() + 1;
    const Tensor weights({count}), mixed({batch_, 1, units_});
    const real share = real(1) / static_cast<real>(count);
    for (int64_t b = 0; b < batch_; ++b) {
      const real *const q = rows.q.value().data() + b * base_, *const keys = keys_.data() +
                                                                             b * capacity() * base_;
      for (int64_t j = 0; j < count; ++j) {
        const real score = share * row_dot(q, keys + j * base_, base_);
        weights[j] = score > 0 ? score * score : real(0);
      }
      for (int64_t c = 0; c < units_; c += kPanel)
        product(1, std::min(kPanel, units_ - c), count, {weights.data(), count},
                {values_.data() + b * capacity() * units_ + c, units_},
                mixed.data() + b * units_ + c, units_);
    }
    const Var answer = linear(multiply(rows.gate, Var(mixed)), weights_.out, {});
    std::copy_n(answer.value().data(), x.size(), out);
    Tally done;
    done.multiply_adds(batch_ * count * (base_ + units_));
    done.moved<real>(moved());
  }

  int64_t weight_numbers() const { return width_ * (3 * units_ + base_); }
  int64_t moved() const { return batch_ * (length() + 2) * (base_ + units_) + weight_numbers(); }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * (keys_.size() + values_.size());
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(batch_ * ((length() + 1) * (base_ + units_) + weight_numbers()));
  }
  double do_step_bytes() const override { return sizeof(real) * static_cast<double>(moved()); }

  int64_t batch_, width_, base_, units_;
  GatedUnitWeights weights_;
  Tensor keys_, values_;  // [batch, capacity, base or units]
};

}  // namespace

GatedUnitRows gated_unit_rows(const Var& x, const GatedUnitWeights& w) {
  GatedUnitRows rows;
  {
    const Var base = silu(linear(x, w.base, {}));
    rows.q = one_head(add(multiply(base, w.query_scale), w.query_shift));
    rows.k = one_head(add(multiply(base, w.key_scale), w.key_shift));
  }
  rows.gate = silu(linear(x, w.gate, {}));
  rows.v = one_head(silu(linear(x, w.value, {})));
  return rows;
}

std::unique_ptr<Decoder> gated_unit_decoder(const Shape& position, int64_t capacity,
                                            const GatedUnitWeights& weights) {
  return std::make_unique<GatedUnitDecoder>(position, capacity, weights);
}

}  // namespace attn
