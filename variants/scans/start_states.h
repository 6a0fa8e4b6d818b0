// Where diagonal state spaces start, and what their number of states must be: variants s4d and h3.
#pragma once

#include <optional>
#include <string>

#include "variants/api/attention.h"

namespace attn {

// [heads, states / 2, head_dim]: one of each conjugate pair, by the parameter `states`.
Shape poles_shape(const AttentionConfig& config);
// log Δ [heads, head_dim], where Δ is log-uniform in [1e-3, 0.1].
Tensor start_steps(const AttentionConfig& config);
// first + n·apart for state n, of poles_shape().
Tensor start_poles(const AttentionConfig& config, double first, double apart);

std::optional<std::string> why_odd_states(const AttentionShape& shape, const Params& params);

}  // namespace attn
