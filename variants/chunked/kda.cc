// kda: Kimi Delta Attention: the delta rule on a state that decays in each channel of the key.
// Kimi Team 2025, arXiv:2510.26692, eq. 1: S̄ = diag(a_t)·S_{t-1}, S_t = S̄ + β_t·k_tᵀ·(v_t -
// k_t·S̄), o_t = q_t·S_t/√d, a = exp(-exp(A_log)·softplus(dt)), β = σ(beta), q and k of length 1.
// Time about 6·n·d² + 112·n·d, memory n·d. No limit equals softmax.
#include <cmath>

#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/delta_rule.h"

namespace attn::variants {
namespace {

class Kda final : public GatedAttention {
 public:
  explicit Kda(const AttentionConfig& config)
      : GatedAttention(config), a_log_(weight("A_log", decay_rates(config, 1))) {}

 private:
  double tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return chunked_attention({.q = unit_rows(q, tau(), {}),
                              .k = unit_rows(k, 1, mask.kv_lengths),
                              .v = v,
                              .log_decay = gated_log_decay(gates[0], a_log_, mask.kv_lengths),
                              .beta = write_strength(gates[1], mask.kv_lengths)},
                             {.kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::channel, true);
    add_decay_cost(s, s.head_dim, cost);
    add_delta_cost(s, cost);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    const auto by = static_cast<real>(tau());
    return state_decoder(position, capacity,
                         {.delta = true,
                          .gate_widths = {dim, 1},
                          .prepare = [dim, by, a_log = a_log_](const StateRows& x) {
                            set_decay(x, dim, dim, a_log.value()[x.head]);
                            set_delta(x, dim, 1, by);
                          }});
  }

  Var a_log_;  // [heads]
};

std::vector<GateInput> kda_gates(const AttentionConfig& config) {
  return {decay_gate(config, config.head_dim, config.params.integer("gate_rank")), beta_gate()};
}

oracle::Array kda_reference(const ReferenceInputs& x) {
  return delta_reference(x, log_decay_reference(x, x.gates[0]), x.gates[1]);
}

}  // namespace

VariantInfo kda() {
  return {.name = "kda",
          .family = "gated",
          .summary = "the delta rule with a decay of each channel",
          .paper = "Kimi Team 2025, arXiv:2510.26692, eq. 1",
          .cost_formula =
              "6·n·d² FLOPs and about 112·n·d inside tiles of 16; memory 4·n·d; in a layer "
              "2·n·(rank·(width + heads·d) + width·heads) more",
          .traits = kGatedTraits,
          .params = {{"gate_rank", 64, "rank of the projection that makes the decay in a layer"}},
          .make = make_as<Kda>,
          .reference = kda_reference,
          .gates = kda_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"Queries and keys are divided by √(|x|² + 1e-6), as fla does; outputs are "
                    "scaled by 1/√d.",
                    "The mixer alone: without the paper's short convolutions and silu before it, "
                    "and without the norm and the gate of the output.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them a state of its own.",
                    "A_log [heads]: a channel decays by exp(-exp(A_log)·softplus(dt)) a step; dt "
                    "has its own bias for each channel."}};
}

}  // namespace attn::variants
