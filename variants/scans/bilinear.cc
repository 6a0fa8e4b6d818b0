// In double, one state after the other; see bilinear.h.
#include "variants/scans/bilinear.h"

#include <cmath>
#include <complex>

#include "core/base/marks.h"

namespace attn {
namespace {

using StateNumber = std::complex<double>;

// Of one state. The gradient of a complex number z is dL/dRe z + i·dL/dIm z; that of z in f(z) is
// conj(f')·that of f(z).
struct BilinearState {
  double step;
  StateNumber pole, input, output;  // A, B and C
  StateNumber under = 1.0 / (1.0 - step * pole / 2.0);
  StateNumber factor = (1.0 + step * pole / 2.0) * under;  // a
  StateNumber held = step * under;                         // of the input

  StateNumber read() const { return 2.0 * output * input * held; }
};

struct BilinearWeights {
  Tensor log_step, log_decay, frequency, input_real, input_imaginary, output_real, output_imaginary;

  int64_t size() const { return log_decay.size(); }
  int64_t channel(int64_t i) const {  // of Δ, for number i of the others
    const int64_t pairs = log_decay.dim(1), dim = log_decay.dim(2);
    return i / (pairs * dim) * dim + i % dim;
  }
  BilinearState state(int64_t i) const {
    const auto at = [i](const Tensor& x) { return static_cast<double>(x[i]); };
    return {.step = std::exp(static_cast<double>(log_step[channel(i)])),
            .pole = {-std::exp(at(log_decay)), at(frequency)},
            .input = {at(input_real), at(input_imaginary)},
            .output = {at(output_real), at(output_imaginary)}};
  }
  // `of` is the gradient of the taps.
  void add_gradients(const Tensor& of, std::span<Tensor> grads) const {
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < size(); ++i) {
      const BilinearState s = state(i);
      const auto at = [&](int64_t part) { return static_cast<double>(of[part * size() + i]); };
      const StateNumber of_factor{at(0), at(1)}, of_read{at(2), at(3)};
      const StateNumber of_held = std::conj(2.0 * s.output * s.input) * of_read;
      const StateNumber square = s.under * s.under;  // a' by ΔA and held' by Δ
      const StateNumber of_product = std::conj(square) * of_factor;
      const StateNumber of_pole =
          s.step * of_product + std::conj(s.step * s.step / 2.0 * square) * of_held;
      const double of_step =
          (std::conj(s.pole) * of_product).real() + (std::conj(square) * of_held).real();
      const StateNumber of_input = std::conj(2.0 * s.output * s.held) * of_read,
                        of_output = std::conj(2.0 * s.input * s.held) * of_read;
      const double all[] = {s.step * of_step, s.pole.real() * of_pole.real(),
                            of_pole.imag(),   of_input.real(),
                            of_input.imag(),  of_output.real(),
                            of_output.imag()};
      for (size_t k = 0; k < std::size(all); ++k)
        if (grads[k].defined()) grads[k][k == 0 ? channel(i) : i] += static_cast<real>(all[k]);
    }
  }
};

}  // namespace

Var bilinear_steps(const DiagonalStates& x) {
  const BilinearWeights w{x.log_step.value(),        x.log_decay.value(),
                          x.frequency.value(),       x.input_real.value(),
                          x.input_imaginary.value(), x.output_real.value(),
                          x.output_imaginary.value()};
  const Shape shape = x.log_decay.shape();
  const Mark mark(Part::elementwise);
  const Tensor taps({4, shape[0], shape[1], shape[2]});
  for (int64_t i = 0; i < w.size(); ++i) {
    const BilinearState s = w.state(i);
    const double parts[] = {s.factor.real(), s.factor.imag(), s.read().real(), s.read().imag()};
    for (int64_t part = 0; part < 4; ++part)
      taps[part * w.size() + i] = static_cast<real>(parts[part]);
  }
  return custom_op(taps,
                   {x.log_step, x.log_decay, x.frequency, x.input_real, x.input_imaginary,
                    x.output_real, x.output_imaginary},
                   [w](const Tensor& g, std::span<Tensor> grads) { w.add_gradients(g, grads); });
}

}  // namespace attn
