// In double, one state after the other; see zero_order_hold.h.
#include "variants/scans/zero_order_hold.h"

#include <cmath>
#include <complex>

#include "core/base/marks.h"

namespace attn {
namespace {

using Complex = std::complex<double>;

// What a step needs of one state: a = e^(Δ·A), c = 2·C·(a - 1)/A.
struct State {
  double step;
  Complex pole, output;  // A and C
  Complex factor = std::exp(step * pole), held = (factor - 1.0) / pole;
};

struct Weights {
  Tensor log_step, log_decay, frequency, real_part, imaginary;

  int64_t size() const { return log_decay.size(); }
  int64_t channel(int64_t i) const {  // of Δ, for number i of the others
    const int64_t pairs = log_decay.dim(1), dim = log_decay.dim(2);
    return i / (pairs * dim) * dim + i % dim;
  }
  State state(int64_t i) const {
    const auto at = [i](const Tensor& x) { return static_cast<double>(x[i]); };
    return {.step = std::exp(static_cast<double>(log_step[channel(i)])),
            .pole = {-std::exp(at(log_decay)), at(frequency)},
            .output = {at(real_part), at(imaginary)}};
  }
  // A gradient of a complex number z is dL/dRe z + i·dL/dIm z; that of z in f(z) is conj(f')·that
  // of f(z). `of` is that of the taps.
  void add_gradients(const Tensor& of, std::span<Tensor> grads) const {
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < size(); ++i) {
      const State s = state(i);
      const auto at = [&](int64_t part) { return static_cast<double>(of[part * size() + i]); };
      const Complex of_read{at(2), at(3)}, of_held = std::conj(2.0 * s.output) * of_read;
      const Complex of_factor = Complex{at(0), at(1)} + std::conj(1.0 / s.pole) * of_held;
      const Complex of_exponent = std::conj(s.factor) * of_factor;
      const Complex of_pole = s.step * of_exponent - std::conj(s.held / s.pole) * of_held;
      const Complex of_output = std::conj(2.0 * s.held) * of_read;
      const double all[] = {s.step * (std::conj(s.pole) * of_exponent).real(),
                            s.pole.real() * of_pole.real(), of_pole.imag(), of_output.real(),
                            of_output.imag()};
      for (size_t k = 0; k < 5; ++k)
        if (grads[k].defined()) grads[k][k == 0 ? channel(i) : i] += static_cast<real>(all[k]);
    }
  }
};

}  // namespace

Var zero_order_hold(const ContinuousStates& x) {
  const Weights w{x.log_step.value(), x.log_decay.value(), x.frequency.value(),
                  x.output_real.value(), x.output_imaginary.value()};
  const Shape shape = x.log_decay.shape();
  const Mark mark(Part::elementwise);
  const Tensor taps({4, shape[0], shape[1], shape[2]});
  for (int64_t i = 0; i < w.size(); ++i) {
    const State s = w.state(i);
    const Complex read = 2.0 * s.output * s.held;
    const double parts[] = {s.factor.real(), s.factor.imag(), read.real(), read.imag()};
    for (int64_t part = 0; part < 4; ++part)
      taps[part * w.size() + i] = static_cast<real>(parts[part]);
  }
  return custom_op(taps, {x.log_step, x.log_decay, x.frequency, x.output_real, x.output_imaginary},
                   [w](const Tensor& g, std::span<Tensor> grads) { w.add_gradients(g, grads); });
}

}  // namespace attn
