// The decay exp(-exp(A_log)·softplus(dt)) of Mamba-2 and its followers, of a gate dt for each head
// or channel and a learned A_log [heads]. Dao and Gu 2024, arXiv:2405.21060.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "variants/api/gates.h"
#include "variants/api/reference.h"
#include "variants/chunked/state_decoder.h"

namespace attn {

inline constexpr Traits kGatedTraits = {
    .causal = true, .linear_time = true, .decode = true, .gated = true};

// log(1 + e^x), without overflow.
inline real softplus_of(real x) {
  return std::max(x, real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// log U(least, 16) of each head. A draw of 0 would be a rate of 0: least = 0 draws from (0, 16].
Tensor decay_rates(const AttentionConfig& config, double least);
// Steps softplus(bias) log-uniform in [1e-3, 0.1].
GateInput decay_gate(const AttentionConfig& config, int64_t width, int64_t rank);
// -exp(A_log)·softplus(dt): dt and the result [batch, heads, len, width]; padding is not read.
Var gated_log_decay(const Var& dt, const Var& rates, const std::vector<int64_t>& kv_lengths);
// Of gated_log_decay(): its gate and its result.
void add_decay_cost(const AttentionShape& shape, int64_t width, Cost& cost);
// The same of one head and position, from the first gate.
void set_decay(const StateRows& rows, int64_t head_dim, int64_t width, real rate);
oracle::Array log_decay_reference(const ReferenceInputs& x, const oracle::Array& dt);

}  // namespace attn
