// gated_deltanet: the delta rule on a state that decays by one number a head and step.
// Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464, eq. 10: S̄ = a_t·S_{t-1}, S_t = S̄ +
// β_t·k_tᵀ·(v_t - k_t·S̄), o_t = q_t·S_t/√d, a = exp(-exp(A_log)·softplus(dt)), β = σ(beta), q and k
// of length 1. Time about 6·n·d² + 320·n·d, memory n·d. No limit equals softmax.
#include <cmath>

#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/delta_rule.h"

namespace attn::variants {
namespace {

class GatedDeltaNet final : public GatedAttention {
 public:
  explicit GatedDeltaNet(const AttentionConfig& config)
      : GatedAttention(config), a_log_(weight("A_log", decay_rates(config, 0))) {}

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
    Cost cost = chunked_cost(s, Decay::step, true);
    add_decay_cost(s, 1, cost);
    add_delta_cost(s, cost);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    const auto by = static_cast<real>(tau());
    return state_decoder(position, capacity,
                         {.delta = true,
                          .gate_widths = {1, 1},
                          .prepare = [dim, by, a_log = a_log_](const StateRows& x) {
                            set_decay(x, dim, 1, a_log.value()[x.head]);
                            set_delta(x, dim, 1, by);
                          }});
  }

  Var a_log_;  // [heads]
};

std::vector<GateInput> gated_deltanet_gates(const AttentionConfig& config) {
  return {decay_gate(config, 1, 0), beta_gate()};
}

oracle::Array gated_deltanet_reference(const ReferenceInputs& x) {
  return delta_reference(x, log_decay_reference(x, x.gates[0]), x.gates[1]);
}

}  // namespace

VariantInfo gated_deltanet() {
  return {
      .name = "gated_deltanet",
      .family = "gated",
      .summary = "the delta rule with one decay a head and step",
      .paper = "Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464, eq. 10",
      .cost_formula =
          "6·n·d² FLOPs and about 320·n·d inside tiles of 64; memory 3·n·d; in a layer "
          "4·n·width·heads more",
      .traits = kGatedTraits,
      .params = {},
      .make = make_as<GatedDeltaNet>,
      .reference = gated_deltanet_reference,
      .gates = gated_deltanet_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {
          "Queries and keys are divided by √(|x|² + 1e-6), as fla does; outputs are scaled by "
          "1/√d.",
          "The mixer alone: without the paper's short convolutions and silu before it, and without "
          "the norm and the gate of the output.",
          "Where query heads share keys and values (kv_heads), each still has its own gates, and "
          "with them a state of its own.",
          "A_log [heads]: the state of a head decays by exp(-exp(A_log)·softplus(dt)) a step."}};
}

}  // namespace attn::variants
