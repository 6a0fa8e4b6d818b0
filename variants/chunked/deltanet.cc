// deltanet: the delta rule: a step replaces what the state holds under its key, by the share β.
// Yang et al. 2024, arXiv:2406.06484, section 3; Schlag et al. 2021, arXiv:2102.11174:
// S_t = S_{t-1} + β_t·k_tᵀ·(v_t - k_t·S_{t-1}), o_t = q_t·S_t/√d, β = σ(beta), q and k of length 1.
// Time about 6·n·d² + 320·n·d, memory n·d; nothing is normalised. No limit equals softmax.
#include <cmath>

#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/delta_rule.h"

namespace attn::variants {
namespace {

class DeltaNet final : public GatedAttention {
 public:
  explicit DeltaNet(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  double tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return chunked_attention({.q = unit_rows(q, tau(), {}),
                              .k = unit_rows(k, 1, mask.kv_lengths),
                              .v = v,
                              .beta = write_strength(gates[0], mask.kv_lengths)},
                             {.kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::none, true);
    add_delta_cost(s, cost);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    const auto by = static_cast<real>(tau());
    return state_decoder(position, capacity,
                         {.delta = true,
                          .gate_widths = {1},
                          .prepare = [dim, by](const StateRows& x) { set_delta(x, dim, 0, by); }});
  }
};

std::vector<GateInput> deltanet_gates(const AttentionConfig&) { return {beta_gate()}; }

oracle::Array deltanet_reference(const ReferenceInputs& x) {
  return delta_reference(x, {}, x.gates[0]);
}

}  // namespace

VariantInfo deltanet() {
  return {.name = "deltanet",
          .family = "gated",
          .summary = "the delta rule: a step overwrites what its key holds",
          .paper = "Yang et al. 2024, arXiv:2406.06484, section 3",
          .cost_formula =
              "6·n·d² FLOPs and about 320·n·d inside tiles of 64; memory 3·n·d; in a layer "
              "2·n·width·heads more",
          .traits = kGatedTraits,
          .params = {},
          .make = make_as<DeltaNet>,
          .reference = deltanet_reference,
          .gates = deltanet_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"Queries and keys are divided by √(|x|² + 1e-6), as fla does; outputs are "
                    "scaled by 1/√d.",
                    "The mixer alone: without the paper's short convolutions and silu before it, "
                    "and without the norm and the gate of the output.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them a state of its own."}};
}

}  // namespace attn::variants
