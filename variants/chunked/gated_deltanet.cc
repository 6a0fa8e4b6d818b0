// gated_deltanet: the delta rule on a state that decays by one number a head and step.
// Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464, eq. 10: S̄ = a_t·S_{t-1}, S_t = S̄ +
// β_t·k_tᵀ·(v_t - k_t·S̄), o_t = q_t·S_t/√d, a = exp(-exp(A_log)·softplus(dt)), β =
// beta_max·σ(beta), q and k of length 1. Time about 6·n·d² + 320·n·d, memory n·d. No limit equals
// softmax.
#include "variants/api/variant_info.h"
#include "variants/chunked/delta_rule.h"
#include "variants/chunked/layer_blocks.h"

namespace attn::variants {
namespace {

std::vector<GateInput> gated_deltanet_gates(const AttentionConfig& config) {
  return {decay_gate(config, 1, 0), beta_gate()};
}

LayerBlock gated_deltanet_layer() {
  LayerBlock layer =
      delta_layer({"Yang, Kautz and Hatamizadeh 2024, section 3.4 and figure 1; defaults of fla, "
                   "layers/gated_deltanet.py: convolution of 4 and silu, values twice as wide as "
                   "keys, norm and gate of each head.",
                   "Keys are as wide as the layer and values twice; fla has 3/4 and 3/2 of it."});
  layer.value_parts = 2;
  layer.gate = LayerBlock::Gate::silu;
  return layer;
}

}  // namespace

VariantInfo gated_deltanet() {
  return {.name = "gated_deltanet",
          .family = "gated",
          .summary = "the delta rule with one decay a head and step",
          .paper = "Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464, eq. 10",
          .cost_formula =
              "6·n·d² FLOPs and about 320·n·d inside tiles of 64; memory 3·n·d; in a layer "
              "4·n·width·heads more",
          .traits = kGatedTraits,
          .params = {beta_max_param()},
          .make = [](const AttentionConfig& config) -> std::unique_ptr<Attention> {
            return std::make_unique<DeltaRule>(config, Decay::step);
          },
          .reference = delta_reference,
          .gates = gated_deltanet_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = delta_notes(
              {"A_log [heads]: the state of a head decays by exp(-exp(A_log)·softplus(dt)) a step.",
               beta_max_note()}),
          .block = gated_deltanet_layer()};
}

}  // namespace attn::variants
