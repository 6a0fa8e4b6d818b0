// From the weights of a continuous state space to the factors of a step of length Δ, where the
// input is held: a = e^(Δ·A), c = 2·C·(a - 1)/A of one of each conjugate pair. Gu et al. 2022,
// arXiv:2206.11893, section 3.1. Costs two complex exponentials for each state, none for a
// position.
#pragma once

#include "core/autograd/var.h"

namespace attn {

struct ContinuousStates {
  Var log_step;                       // [heads, dim]: log Δ
  Var log_decay, frequency;           // [heads, states, dim]: A = -e^log_decay + i·frequency
  Var output_real, output_imaginary;  // [heads, states, dim]: C, with B = 1 inside
};

// -> [4, heads, states, dim] as constant_scan() takes them. Differentiable by all weights.
Var zero_order_hold(const ContinuousStates& states);

}  // namespace attn
