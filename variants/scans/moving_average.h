// Damped exponential moving averages of each channel: h_n = (1 - p_n·a_n)·h_n + p_n·β_n·x, and
// their sum Σ_n γ_n·h_n/√N, with p and a the logistic functions of weights. Ma et al. 2022,
// arXiv:2209.10655, section 3.1. The scan of constant_scan.h with real poles: 12 FLOPs for each
// state and position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

struct AverageWeights {  // [states, width] each; p = σ(step), a = σ(damping)
  Var step, damping, input, output;
};
// As constant_scan() takes them: [4, 1, states, width].
Var average_taps(const AverageWeights& weights);

// x [batch, len, width] -> the same shape, with zeros at or beyond `lengths`. With two sets of
// weights the second averages from the end to the start; both include the position itself.
Var moving_average(const Var& x, const std::vector<AverageWeights>& weights,
                   const std::vector<int64_t>& lengths);
// Of rows as wide as all heads together; `both`: with two sets of weights.
Cost average_cost(const AttentionShape& shape, int64_t states, bool both);

}  // namespace attn
