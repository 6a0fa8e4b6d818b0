// From the weights of a continuous state space to the factors of a step of length Δ by the bilinear
// rule: a = (1 + ΔA/2)/(1 - ΔA/2), c = 2·C·B·Δ/(1 - ΔA/2) of one of each conjugate pair. Gu et al.
// 2022, arXiv:2206.11893, section 3.1. Costs some complex products for each state, none for a
// position.
#pragma once

#include "core/autograd/var.h"

namespace attn {

struct DiagonalStates {
  Var log_step;                       // [heads, dim]: log Δ
  Var log_decay, frequency;           // [heads, states, dim]: A = -e^log_decay + i·frequency
  Var input_real, input_imaginary;    // B
  Var output_real, output_imaginary;  // C
};

// -> [4, heads, states, dim] as constant_scan() takes them. Differentiable by all weights.
Var bilinear_steps(const DiagonalStates& states);

}  // namespace attn
