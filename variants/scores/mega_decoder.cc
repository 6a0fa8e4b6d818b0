// One position at a time; see mega_unit.h. A chunk that begins overwrites the cache of the last
// one. Averages after the last position and after the one before are kept, so that a step can be
// taken back.
#include <algorithm>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/ops/ops.h"
#include "core/simd/scan_rows.h"
#include "variants/scores/mega_unit.h"

namespace attn {
namespace {

class MegaDecoder final : public Decoder {
 public:
  MegaDecoder(const Shape& position, int64_t capacity, const MegaWeights& weights)
      : Decoder(position, capacity),
        batch_(position[0]),
        weights_(weights),
        states_(Tensor::zeros({2, batch_, 2 * weights.states() * weights.width()})),
        cache_(batch_, weights.chunk > 0 ? std::min(weights.chunk, capacity) : capacity,
               weights.narrow(), weights.units()) {
    const NoGrad no_grad;
    taps_ = average_taps(weights.average[0]).value();
  }

 private:
  // Of rows x [batch, len, width], which the averages take in.
  Var averaged(const Tensor& x) const {
    const Mark mark(Part::recurrence);
    const int64_t len = x.dim(1), width = x.dim(2), size = weights_.states() * width;
    const auto state_after = [&](int64_t count) {  // positions
      return states_.data() + count % 2 * batch_ * 2 * size;
    };
    const real* const before = state_after(length());
    real* const state = state_after(length() + len);
    if (state != before) std::copy_n(before, batch_ * 2 * size, state);
    const Tensor to(x.shape());
    for (int64_t b = 0; b < batch_; ++b)
      scan_constant({len, width, weights_.states(), x.data() + b * len * width, taps_.data(),
                     taps_.data() + size, taps_.data() + 2 * size, taps_.data() + 3 * size},
                    state + b * 2 * size, to.data() + b * len * width);
    count_flops(static_cast<double>(kConstantFlops * batch_ * len * size));
    return Var(to);
  }

  void do_extend(const Tensor&, const Tensor& v) override {
    const NoGrad no_grad;
    const Var x = merge_heads(Var(v)), e = mega_gate_input(x, averaged(x.value()), weights_);
    const MegaRows rows = mega_rows(x, e, weights_);
    cache_.put(length(), rows.k.value(), rows.v.value());
  }
  void do_step(const real*, const real*, const real* v, real* out) override {
    const NoGrad no_grad;
    const Tensor row({batch_, 1, weights_.width()});
    std::copy_n(v, row.size(), row.data());
    const Var x(row), e = mega_gate_input(x, averaged(row), weights_);
    const MegaRows rows = mega_rows(x, e, weights_);
    cache_.put(length(), rows.k.value(), rows.v.value());
    const Var mixed(cache_.mixed(rows.q.value(), seen(), weights_.score));
    const Var answer = mega_answer(x, e, mixed, weights_);
    std::copy_n(answer.value().data(), row.size(), out);
    count_bytes(moved());
  }

  int64_t seen() const { return length() % cache_.capacity() + 1; }  // of the chunk
  double average_flops() const {
    return static_cast<double>(kConstantFlops * batch_ * weights_.states() * weights_.width());
  }
  // Beside the cache: one state read, the other written, and matrices.
  double moved() const {
    return sizeof(real) * static_cast<double>(states_.size() + weights_.reals());
  }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size() + cache_.bytes();
  }
  double do_step_flops() const override {
    return average_flops() +
           2 * static_cast<double>(cache_.multiply_adds(seen()) + batch_ * weights_.reals());
  }
  double do_step_bytes() const override {
    return moved() + sizeof(real) * static_cast<double>(cache_.moved(seen()));
  }

  int64_t batch_;
  MegaWeights weights_;
  Tensor states_, taps_;  // [2, batch, 2·states·width], [4, 1, states, width]
  UnitCache cache_;
};

}  // namespace

std::unique_ptr<Decoder> mega_decoder(const Shape& position, int64_t capacity,
                                      const MegaWeights& weights) {
  return std::make_unique<MegaDecoder>(position, capacity, weights);
}

}  // namespace attn
