// Rows of the real-gated linear recurrent unit: the steps of its scan and what the scan reads, one
// position of a head at a time; De et al. 2024, arXiv:2402.19427, eqs. 1-4. They run on the
// instruction set that isa.h selects.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// A step is rate·σ(gate), and at least this. Below it a decay of 1 and a gain of 0 differ from the
// true ones by less than any number shows; and what the scan reads, a quotient by the step, stays
// finite.
inline constexpr real kLeastStep = static_cast<real>(1e-30);

void gated_steps(int64_t n, const real* rates, const real* gates, real* steps);
// `grads` of the steps. Adds to gate_grads and rate_grads [n].
void gated_steps_backward(int64_t n, const real* rates, const real* gates, const real* grads,
                          real* gate_grads, real* rate_grads);

struct GatedInput {
  const real *x, *gates, *steps;  // [n]
  bool is_first;                  // gain 1: there is no state to make room for
};
// to = gain·σ(gate)·x / step with gain √(1 - e^(-2·step)).
void gated_inputs(int64_t n, const GatedInput& row, real* to);
// `grads` of what gated_inputs gives. Adds to the gradients [n] of each part.
void gated_inputs_backward(int64_t n, const GatedInput& row, const real* grads, real* x_grads,
                           real* gate_grads, real* step_grads);

}  // namespace attn
