// deltanet: the delta rule: a step replaces what the state holds under its key, by the share β.
// Yang et al. 2024, arXiv:2406.06484, section 3; Schlag et al. 2021, arXiv:2102.11174:
// S_t = S_{t-1} + β_t·k_tᵀ·(v_t - k_t·S_{t-1}), o_t = q_t·S_t/√d, β = beta_max·σ(beta), q and k of
// length 1. Time about 6·n·d² + 320·n·d, memory n·d; nothing is normalised. No limit equals
// softmax.
#include "variants/api/variant_info.h"
#include "variants/chunked/delta_rule.h"
#include "variants/chunked/layer_blocks.h"

namespace attn::variants {
namespace {

std::vector<GateInput> deltanet_gates(const AttentionConfig&) { return {beta_gate()}; }

}  // namespace

VariantInfo deltanet() {
  return {
      .name = "deltanet",
      .family = "gated",
      .summary = "the delta rule: a step overwrites what its key holds",
      .paper = "Yang et al. 2024, arXiv:2406.06484, section 3",
      .cost_formula =
          "6·n·d² FLOPs and about 320·n·d inside tiles of 64; memory 3·n·d; in a layer "
          "2·n·width·heads more",
      .traits = kGatedTraits,
      .params = {beta_max_param()},
      .make = [](const AttentionConfig& config) -> std::unique_ptr<Attention> {
        return std::make_unique<DeltaRule>(config, Decay::none);
      },
      .reference = delta_reference,
      .gates = deltanet_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = delta_notes({beta_max_note()}),
      .block = delta_layer({"Yang et al. 2024, section 4.1; defaults of fla, layers/delta_net.py: "
                            "convolution of 4 and silu, the norm of each head, no output gate."})};
}

}  // namespace attn::variants
