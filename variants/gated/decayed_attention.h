// Linear attention with a decaying state, one position after the other: o_t = τ·q_t·S_t,
// S_t = diag(exp g_t)·S_{t-1} + k_tᵀ·v_t, S of [head_dim, head_dim], with log-decays g <= 0. Yang
// et al. 2023, arXiv:2312.06635, eqs. 3-4 (a decay for each channel of the key); Dao and Gu 2024,
// arXiv:2405.21060, eq. 16 (one decay for all channels).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/traits.h"

namespace attn {

inline constexpr Traits kDecayedTraits = {
    .causal = true, .linear_time = true, .decode = true, .gated = true};

// q, k, v [batch, heads, len, head_dim], log_decay [batch, heads, len, head_dim or 1] -> [batch,
// heads, len, head_dim]. Positions j >= kv_lengths[b] of k, v and log_decay are not read: they
// write nothing and decay nothing. A decay of exp(g) = 0 is allowed: no quotient of decays is
// formed.
//
// The gradient of g_t follows from those of q and k, without a state of each position: the weight
// of key j for query i contains exp(g_{j+1} + … + g_i), so that dg_t = Σ_{s>=t} (q_s·dq_s -
// k_s·dk_s) for each channel, summed in double.
Var decayed_attention(const Var& q, const Var& k, const Var& v, const Var& log_decay, double scale,
                      const std::vector<int64_t>& kv_lengths);

// Of decayed_attention() alone: FLOPs, the bytes of q, k, v and the output, the output and the
// workspace as peak, the state.
Cost decayed_cost(const AttentionShape& shape);

// Writes the decays exp(g) of the head_dim channels of `head` (below the heads of one batch entry)
// for a position with the raw numbers `gate`; returns the factor of its value.
using DecayOf = std::function<real(int64_t head, const real* gate, real* decay)>;

// The state S of each head; a step costs 5·head_dim² FLOPs for a head. The decoder takes one gate
// of `gate_width` numbers. Null where query heads share keys: each has its own decay.
std::unique_ptr<Decoder> decayed_decoder(const Shape& position, int64_t capacity,
                                         int64_t gate_width, double scale, DecayOf decay_of);

}  // namespace attn
