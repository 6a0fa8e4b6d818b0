// The delta rule on a state that may decay: the attention of deltanet, gated_deltanet and kda, and
// their reference. Yang et al. 2024, arXiv:2406.06484, section 2 and appendix A.
#pragma once

#include <string>
#include <vector>

#include "variants/api/gated_attention.h"
#include "variants/api/reference.h"
#include "variants/chunked/chunked.h"

namespace attn {

// S̄ = a_t·S_{t-1}, S_t = S̄ + β_t·k_tᵀ·(v_t - k_t·S̄), o_t = q_t·S_t/√d, with rows of q and k of
// length 1, a = exp(-exp(A_log)·softplus(dt)) and β = beta_max·σ(beta), where beta_max is 1 unless
// the variant has a parameter of that name. The gates are dt, unless `decay` is none, and beta.
class DeltaRule final : public GatedAttention {
 public:
  // decay: none, step or channel; least_rate: see decay_rates().
  DeltaRule(const AttentionConfig& config, Decay decay, double least_rate = 0);

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override;
  Cost do_cost(const AttentionShape& shape) const override;
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override;
  double tau() const;
  int64_t decay_width(int64_t head_dim) const;  // of dt; 0: none

  Decay decay_;
  double beta_max_;
  Var a_log_;  // [heads]; undefined without decay
};

// The gate "beta" of each head and position.
GateInput beta_gate();
// The largest strength of a write. Above 1 a step can turn what a key holds around: I − β·kᵀ·k has
// the eigenvalue 1 − β. Grazzi et al. 2024, arXiv:2411.12537, section 4.
ParamSpec beta_max_param();
std::string beta_max_note();
// The outputs in double.
oracle::Array delta_reference(const ReferenceInputs& x);
// What `info` says of all of them, and `more` of one.
std::vector<std::string> delta_notes(const std::vector<std::string>& more = {});

}  // namespace attn
