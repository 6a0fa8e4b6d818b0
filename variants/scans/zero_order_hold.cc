// See zero_order_hold.h.
#include "variants/scans/zero_order_hold.h"

#include <array>
#include <cmath>

#include "variants/scans/state_taps.h"

namespace attn {
namespace {

// What a step needs of one state: a = e^(Δ·A), c = 2·C·(a - 1)/A.
struct State {
  double step;
  StateNumber pole, output;  // A and C
  StateNumber factor = std::exp(step * pole), held = (factor - 1.0) / pole;
};

struct Weights {
  Tensor log_step, log_decay, frequency, real_part, imaginary;

  State state(int64_t i) const {
    const auto at = [i](const Tensor& x) { return static_cast<double>(x[i]); };
    const int64_t channel = channel_of_state(i, log_decay.shape());
    return {.step = std::exp(static_cast<double>(log_step[channel])),
            .pole = {-std::exp(at(log_decay)), at(frequency)},
            .output = {at(real_part), at(imaginary)}};
  }
  StateTap tap(int64_t i) const {
    const State s = state(i);
    return {s.factor, 2.0 * s.output * s.held};
  }
  std::array<double, 5> gradients(int64_t i, const StateTap& of) const {
    const State s = state(i);
    const StateNumber of_held = std::conj(2.0 * s.output) * of.read;
    const StateNumber of_factor = of.factor + std::conj(1.0 / s.pole) * of_held;
    const StateNumber of_exponent = std::conj(s.factor) * of_factor;
    const StateNumber of_pole = s.step * of_exponent - std::conj(s.held / s.pole) * of_held;
    const StateNumber of_output = std::conj(2.0 * s.held) * of.read;
    return {s.step * (std::conj(s.pole) * of_exponent).real(), s.pole.real() * of_pole.real(),
            of_pole.imag(), of_output.real(), of_output.imag()};
  }
};

}  // namespace

Var zero_order_hold(const ContinuousStates& x) {
  const Weights w{x.log_step.value(), x.log_decay.value(), x.frequency.value(),
                  x.output_real.value(), x.output_imaginary.value()};
  const Shape states = w.log_decay.shape();
  const Tensor taps = state_taps(states, [&](int64_t i) { return w.tap(i); });
  return custom_op(taps, {x.log_step, x.log_decay, x.frequency, x.output_real, x.output_imaginary},
                   [w, states](const Tensor& g, std::span<Tensor> grads) {
                     add_state_gradients(g, states, grads, [&](int64_t i, const StateTap& of) {
                       return w.gradients(i, of);
                     });
                   });
}

}  // namespace attn
