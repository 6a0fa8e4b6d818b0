// Projections by ops; see gated_unit.h.
#include "variants/scores/gated_unit.h"

#include <algorithm>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "variants/scores/unit_cache.h"

namespace attn {

namespace {

// [batch, len, cols] as one head.
Var one_head(const Var& x) { return reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)}); }

class GatedUnitDecoder final : public Decoder {
 public:
  GatedUnitDecoder(const Shape& position, int64_t capacity, const GatedUnitWeights& weights)
      : Decoder(position, capacity),
        batch_(position[0]),
        width_(position[1] * position[3]),
        weights_(weights),
        cache_(batch_, capacity, weights.base.dim(1), weights.value.dim(1)) {}

 private:
  void do_extend(const Tensor&, const Tensor& v) override {
    const NoGrad no_grad;
    const GatedUnitRows rows = gated_unit_rows(merge_heads(Var(v)), weights_);
    cache_.put(length(), rows.k.value(), rows.v.value());
  }
  void do_step(const real*, const real*, const real* v, real* out) override {
    const NoGrad no_grad;
    const Tensor x({batch_, 1, width_});
    std::copy_n(v, x.size(), x.data());
    const GatedUnitRows rows = gated_unit_rows(Var(x), weights_);
    cache_.put(length(), rows.k.value(), rows.v.value());
    const Var mixed(cache_.mixed(rows.q.value(), length() + 1, UnitScore::squared_relu));
    const Var answer = linear(multiply(rows.gate, mixed), weights_.out, {});
    std::copy_n(answer.value().data(), x.size(), out);
    count_bytes(sizeof(real) * static_cast<double>(weight_numbers()));
  }

  int64_t weight_numbers() const {
    return width_ * (3 * weights_.value.dim(1) + weights_.base.dim(1));
  }
  int64_t do_state_bytes() const override { return cache_.bytes(); }
  double do_step_flops() const override {
    return 2 * static_cast<double>(cache_.multiply_adds(length() + 1) + batch_ * weight_numbers());
  }
  double do_step_bytes() const override {
    return sizeof(real) * static_cast<double>(cache_.moved(length() + 1) + weight_numbers());
  }

  int64_t batch_, width_;
  GatedUnitWeights weights_;
  UnitCache cache_;
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
