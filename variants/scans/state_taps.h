// From the weights of each state to the factors of constant_scan(), in double, one state after the
// other. Private to the rules of steps: zero_order_hold.cc and bilinear.cc.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "core/base/marks.h"

namespace attn {

using StateNumber = std::complex<double>;

// A gradient of a complex number z is dL/dRe z + i·dL/dIm z; that of z in f(z) is conj(f')·that of
// f(z).
struct StateTap {
  StateNumber factor, read;  // a and c of constant_scan(), or their gradients
};

// The place in [heads, dim] of number i of [heads, states, dim].
inline int64_t channel_of_state(int64_t i, const Shape& states) {
  return i / (states[1] * states[2]) * states[2] + i % states[2];
}

// [4, heads, states, dim] from tap_of(i), a StateTap.
template <class TapOf>
Tensor state_taps(const Shape& states, const TapOf& tap_of) {
  const Mark mark(Part::elementwise);
  const int64_t size = states.size();
  const Tensor taps({4, states[0], states[1], states[2]});
  for (int64_t i = 0; i < size; ++i) {
    const StateTap tap = tap_of(i);
    const double parts[] = {tap.factor.real(), tap.factor.imag(), tap.read.real(), tap.read.imag()};
    for (int64_t part = 0; part < 4; ++part) taps[part * size + i] = static_cast<real>(parts[part]);
  }
  return taps;
}

// Adds gradients_of(i, gradients of the tap), an array: first that of log Δ [heads, dim], then
// those of weights [heads, states, dim]. `of` is the gradient of the taps.
template <class GradientsOf>
void add_state_gradients(const Tensor& of, const Shape& states, std::span<Tensor> grads,
                         const GradientsOf& gradients_of) {
  const Mark mark(Part::elementwise);
  const int64_t size = states.size();
  for (int64_t i = 0; i < size; ++i) {
    const auto at = [&](int64_t part) { return static_cast<double>(of[part * size + i]); };
    const auto all = gradients_of(i, StateTap{{at(0), at(1)}, {at(2), at(3)}});
    for (size_t k = 0; k < all.size(); ++k)
      if (grads[k].defined())
        grads[k][k == 0 ? channel_of_state(i, states) : i] += static_cast<real>(all[k]);
  }
}

}  // namespace attn
