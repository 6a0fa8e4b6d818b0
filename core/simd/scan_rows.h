// Kernels of diagonal state spaces: states h = a·h + input that each decay by their own factor a.
// Steps go one after the other, lanes are channels. They run on the instruction set that isa.h
// selects. A step of a state takes one exponential and 6 FLOPs (selective), or 12 (constant).
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// `steps` positions of one head with `dim` channels of `states` states each. Of position t and
// channel c: a_nc = 2^(delta·rate_nc), h_nc = a_nc·h_nc + delta·x·write_n, out = Σ_n read_n·h_nc.
struct SelectiveRows {
  int64_t steps, dim, states;
  const real *delta, *x;     // [steps, dim], delta >= 0
  const real *write, *read;  // [steps, states]
  const real* rate;          // [states, dim], at most 0
};
// `state` [states, dim] is replaced by the last one; out [steps, dim]; null: no outputs.
void scan_selective(const SelectiveRows& rows, real* state, real* out);

struct SelectiveGrads {
  real *delta, *x;     // [steps, dim], replaced
  real *write, *read;  // [steps, states], replaced
  real* rate;          // [states, dim], added to: of delta·rate·ln 2
};
// `state` is that before the first of the positions. `grad_state`, the gradient of the last state,
// is replaced by that of `state`. The states in between are computed again, into `work`.
void scan_selective_backward(const SelectiveRows& rows, const real* state, const real* grad_out,
                             real* grad_state, const SelectiveGrads& grads, real* work);
int64_t selective_backward_reals(int64_t steps, int64_t states);

// The same with factors that do not depend on the position, complex: h_nc = a_nc·h_nc + x_c,
// out_c = Re Σ_n read_nc·h_nc.
struct ConstantRows {
  int64_t steps, dim, states;
  const real* x;                      // [steps, dim]
  const real *factor_re, *factor_im;  // [states, dim]
  const real *read_re, *read_im;      // [states, dim]
};
// `state` [2, states, dim], real parts, then imaginary ones.
void scan_constant(const ConstantRows& rows, real* state, real* out);

struct ConstantGrads {
  real* x;                      // [steps, dim], replaced
  real *factor_re, *factor_im;  // [states, dim], added to, of d/dRe + i·d/dIm
  real *read_re, *read_im;
};
void scan_constant_backward(const ConstantRows& rows, const real* state, const real* grad_out,
                            real* grad_state, const ConstantGrads& grads, real* work);
int64_t constant_backward_reals(int64_t steps);

// Complex states of complex inputs, side by side: h_j = factor_j·h_j + scale_j·x_j. x and the
// states h of all positions are [steps, 2·states]: real parts, then imaginary ones.
struct ComplexRows {
  int64_t steps, states;
  const real *factor_re, *factor_im, *scale;  // [states]
};
// `state` [2·states] is that before the first position; null: zeros. out may be x.
void scan_complex(const ComplexRows& rows, const real* x, const real* state, real* out);
// grad [steps, 2·states], the gradient of all states, is replaced by that with what later states
// add: the gradient of scale·x.
void scan_complex_backward(const ComplexRows& rows, real* grad);

}  // namespace attn
