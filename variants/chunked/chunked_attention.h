// Linear attention with decay, and the delta rule, several heads and sequences in parallel. With
// rows q_t, k_t [key_dim], v_t [dim], a state S [key_dim, dim] that is 0 before the first step, and
// decays a_t = exp(log_decay_t):
//   decay       S_t = diag(a_t)·S_{t-1} + k_tᵀ·v_t,  o_t = q_t·S_t
//   bonus u     the same states,  o_t = q_t·(S_{t-1} + diag(u)·k_tᵀ·v_t)
//   delta rule  S_t = S̄ + β_t·k_tᵀ·(v_t - k_t·S̄) with S̄ = diag(a_t)·S_{t-1},  o_t = q_t·S_t
//   removal     S_t = diag(a_t)·S_{t-1} - b_tᵀ·(e_t·S_{t-1}) + k_tᵀ·v_t,  o_t = q_t·S_t
// Outputs are multiplied by `scale`; nothing is normalised. Decay: Sun et al. 2023,
// arXiv:2307.08621, eqs. 5-7 (a number for each head); Dao and Gu 2024, arXiv:2405.21060 (for each
// step); Yang et al. 2024, arXiv:2312.06635 (for each channel). Bonus: Peng et al. 2024,
// arXiv:2404.05892. Delta rule: Yang et al. 2024, arXiv:2406.06484; with decay arXiv:2412.06464;
// for each channel arXiv:2510.26692. Removal (diagonal plus a matrix of rank 1): Peng et al. 2025,
// arXiv:2503.14456.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/chunked/chunked_problem.h"

namespace attn {

struct ChunkedInputs {
  Var q, k;  // [batch, heads, len, key_dim]
  Var v;     // [batch, heads, len, dim]
  // [heads], [batch, heads, len, 1] or [batch, heads, len, key_dim]; undefined: no decay. Where
  // `rule` takes them as given, finite and at most 0: exponents of pairs are differences of sums of
  // log-decays, and none is above 0. Else gates, which become log-decays tile by tile.
  Var log_decay = {};
  LogDecay rule = {};
  Var beta = {};   // [batch, heads, len, 1]: the delta rule; undefined: none
  Var bonus = {};  // [heads, key_dim]; undefined: outputs read S_t
  // e and b [batch, heads, len, key_dim]: the removal; both or none. With decays of channels or
  // without decay.
  Var erase = {}, remove = {};
};

struct ChunkedOptions {
  // Valid positions of each batch entry, as in Mask; empty: all. Padding writes nothing, decays
  // nothing and is never read, except for its queries, which read the last state.
  std::vector<int64_t> kv_lengths = {};
  // Positions from one stored state to the next, at least 1. The result is the same up to rounding.
  int64_t chunk = 64;
  double scale = 1;
};

// The output [batch, heads, len, dim]. Differentiable by all inputs. Error for shapes that do not
// fit, and for more than one of beta, bonus and removal. Without gradients, the workspace is
// independent of len.
Var chunked_attention(const ChunkedInputs& inputs, const ChunkedOptions& options = {});

// The cost of a forward without gradients, and the FLOPs of a backward, by counting tiles.
Cost chunked_cost(const ChunkedProblem& problem);
// The same, with head_dim columns of q, k and v.
enum class WriteRule : uint8_t { plain, delta, removal, bonus };
Cost chunked_cost(const AttentionShape& shape, Decay decay, WriteRule rule = WriteRule::plain);

}  // namespace attn
