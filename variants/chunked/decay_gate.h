// The gate dt of the decay exp(-exp(A_log)·softplus(dt)) of Mamba-2 and its followers, for each
// head or channel, and what variants with gated decays share. Dao and Gu 2024, arXiv:2405.21060.
#pragma once

#include <cstdint>

#include "variants/api/gates.h"
#include "variants/api/reference.h"
#include "variants/chunked/log_decay.h"
#include "variants/chunked/state_decoder.h"

namespace attn {

inline constexpr Traits kGatedTraits = {
    .causal = true, .linear_time = true, .decode = true, .gated = true};

// log U(least, 16) of each head. A draw of 0 would be a rate of 0: least = 0 draws from (0, 16].
Tensor decay_rates(const AttentionConfig& config, double least);
// Steps softplus(bias) log-uniform in [1e-3, 0.1].
GateInput decay_gate(const AttentionConfig& config, int64_t width, int64_t rank);
// The decays of one head and position, from the first gate.
void set_decay(const StateRows& rows, int64_t head_dim, int64_t width, const LogDecay& rule);
// -exp(A_log)·softplus(dt), where A_log is the first weight.
oracle::Array log_decay_reference(const ReferenceInputs& x, const oracle::Array& dt);

}  // namespace attn
