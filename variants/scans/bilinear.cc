// See bilinear.h.
#include "variants/scans/bilinear.h"

#include <array>
#include <cmath>

#include "variants/scans/state_taps.h"

namespace attn {
namespace {

struct BilinearState {
  double step;
  StateNumber pole, input, output;  // A, B and C
  StateNumber under = 1.0 / (1.0 - step * pole / 2.0);
  StateNumber factor = (1.0 + step * pole / 2.0) * under;  // a
  StateNumber held = step * under;                         // of the input
};

struct BilinearWeights {
  Tensor log_step, log_decay, frequency, input_real, input_imaginary, output_real, output_imaginary;

  BilinearState state(int64_t i) const {
    const auto at = [i](const Tensor& x) { return static_cast<double>(x[i]); };
    const int64_t channel = channel_of_state(i, log_decay.shape());
    return {.step = std::exp(static_cast<double>(log_step[channel])),
            .pole = {-std::exp(at(log_decay)), at(frequency)},
            .input = {at(input_real), at(input_imaginary)},
            .output = {at(output_real), at(output_imaginary)}};
  }
  StateTap tap(int64_t i) const {
    const BilinearState s = state(i);
    return {s.factor, 2.0 * s.output * s.input * s.held};
  }
  std::array<double, 7> gradients(int64_t i, const StateTap& of) const {
    const BilinearState s = state(i);
    const StateNumber of_held = std::conj(2.0 * s.output * s.input) * of.read;
    const StateNumber square = s.under * s.under;  // a' by ΔA and held' by Δ
    const StateNumber of_product = std::conj(square) * of.factor;
    const StateNumber of_pole =
        s.step * of_product + std::conj(s.step * s.step / 2.0 * square) * of_held;
    const double of_step =
        (std::conj(s.pole) * of_product).real() + (std::conj(square) * of_held).real();
    const StateNumber of_input = std::conj(2.0 * s.output * s.held) * of.read,
                      of_output = std::conj(2.0 * s.input * s.held) * of.read;
    return {s.step * of_step, s.pole.real() * of_pole.real(),
            of_pole.imag(),   of_input.real(),
            of_input.imag(),  of_output.real(),
            of_output.imag()};
  }
};

}  // namespace

Var bilinear_steps(const DiagonalStates& x) {
  const BilinearWeights w{x.log_step.value(),        x.log_decay.value(),
                          x.frequency.value(),       x.input_real.value(),
                          x.input_imaginary.value(), x.output_real.value(),
                          x.output_imaginary.value()};
  const Shape states = w.log_decay.shape();
  const Tensor taps = state_taps(states, [&](int64_t i) { return w.tap(i); });
  return custom_op(taps,
                   {x.log_step, x.log_decay, x.frequency, x.input_real, x.input_imaginary,
                    x.output_real, x.output_imaginary},
                   [w, states](const Tensor& g, std::span<Tensor> grads) {
                     add_state_gradients(g, states, grads, [&](int64_t i, const StateTap& of) {
                       return w.gradients(i, of);
                     });
                   });
}

}  // namespace attn
