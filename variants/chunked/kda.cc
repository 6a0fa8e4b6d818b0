// kda: Kimi Delta Attention: the delta rule on a state that decays in each channel of the key.
// Kimi Team 2025, arXiv:2510.26692, eq. 1: S̄ = diag(a_t)·S_{t-1}, S_t = S̄ + β_t·k_tᵀ·(v_t -
// k_t·S̄), o_t = q_t·S_t/√d, a = exp(-exp(A_log)·softplus(dt)), β = σ(beta), q and k of length 1.
// Time about 6·n·d² + 112·n·d, memory n·d. No limit equals softmax.
#include "variants/api/variant_info.h"
#include "variants/chunked/delta_rule.h"
#include "variants/chunked/layer_blocks.h"

namespace attn::variants {
namespace {

std::vector<GateInput> kda_gates(const AttentionConfig& config) {
  return {decay_gate(config, config.head_dim, config.params.integer("gate_rank")), beta_gate()};
}

LayerBlock kda_layer() {
  LayerBlock layer =
      delta_layer({"Kimi Team 2025, section 3 and figure 3; defaults of fla, layers/kda.py: "
                   "convolution of 4 and silu, a sigmoid gate through head_dim numbers. The "
                   "rank of the decay is gate_rank; fla has head_dim."});
  layer.gate = LayerBlock::Gate::sigmoid;
  layer.gate_rank = -1;
  layer.gate_bias = true;
  return layer;
}

}  // namespace

VariantInfo kda() {
  return {
      .name = "kda",
      .family = "gated",
      .summary = "the delta rule with a decay of each channel",
      .paper = "Kimi Team 2025, arXiv:2510.26692, eq. 1",
      .cost_formula =
          "6·n·d² FLOPs and about 112·n·d inside tiles of 16; memory 3·n·d; in a layer "
          "2·n·(rank·(width + heads·d) + width·heads) more",
      .traits = kGatedTraits,
      .params = {{"gate_rank", 64, "rank of the projection that makes the decay in a layer"}},
      .make = [](const AttentionConfig& config) -> std::unique_ptr<Attention> {
        return std::make_unique<DeltaRule>(config, Decay::channel, 1);
      },
      .reference = delta_reference,
      .gates = kda_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = delta_notes({"A_log [heads]: a channel decays by exp(-exp(A_log)·softplus(dt)) a "
                            "step; dt has its own bias for each channel."}),
      .block = kda_layer()};
}

}  // namespace attn::variants
