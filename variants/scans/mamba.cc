// mamba: the selective state space S6 of Mamba: states of each channel that decay by the step Δ of
// the position, which also scales the write. Gu and Dao 2023, arXiv:2312.00752, algorithm 2, with
// Δ·B as in its code. Time 6·n·d·states and as many exponentials / 6, memory n·d.
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/state_space.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

class Mamba final : public GatedAttention {
 public:
  explicit Mamba(const AttentionConfig& config)
      : GatedAttention(config), a_log_(weight("A_log", start(config))) {}

 private:
  // log 1, log 2, ..: the states of a channel decay at different rates.
  static Tensor start(const AttentionConfig& config) {
    const int64_t states = config.params.integer("states");
    const Tensor a_log({config.heads, states, config.head_dim});
    for (int64_t i = 0; i < a_log.size(); ++i)
      a_log[i] =
          static_cast<real>(std::log(1.0 + static_cast<double>(i / config.head_dim % states)));
    return a_log;
  }

  Var do_gated_forward(const Var&, const Var&, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const Var delta = softplus(zero_padding(gates[0], mask.kv_lengths));
    return selective_scan({v, delta, gates[1], gates[2], a_log_}, mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = selective_cost(s, params().integer("states"));
    const double steps =
        sizeof(real) * static_cast<double>(s.batch * s.heads * s.kv_len * s.head_dim);
    cost.bytes += 2 * steps;  // Δ from its gate
    cost.peak_bytes += steps;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return selective_decoder(position, capacity, a_log_.value());
  }

  Var a_log_;  // [heads, states, head_dim]
};

std::vector<GateInput> mamba_gates(const AttentionConfig& config) {
  const int64_t states = config.params.integer("states"), width = config.heads * config.head_dim;
  GateInput step = decay_gate(config, config.head_dim, (width + 15) / 16);
  step.help = "the step Δ before its softplus";
  return {step,
          {.name = "B", .help = "what a position writes to each state", .width = states},
          {.name = "C", .help = "what a position reads of each state", .width = states}};
}

}  // namespace

VariantInfo mamba() {
  return {
      .name = "mamba",
      .family = "state space",
      .summary = "states of each channel, written and read as the position says",
      .paper = "Gu and Dao 2023, arXiv:2312.00752, algorithm 2, with Δ·B as in its code",
      .cost_formula =
          "6·n·d·states FLOPs and n·d·states exponentials; memory 2·n·d; in a layer "
          "2·n·width·(rank + 2·heads·states) and 2·n·rank·heads·d more",
      .traits = kGatedTraits,
      .params = {{"states", 16, "states of each channel", 1, 256}},
      .make = make_as<Mamba>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::mamba(x.v, x.gates, x.weights[0], {x.mask.kv_lengths});
          },
      .reads = [](const Params&) { return VariantInfo::Reads{.queries = false, .keys = false}; },
      .gates = mamba_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {"The mixer alone, unless block=paper: without the paper's short convolution, skip "
                "connection D·x and output gate, as mamba2. A layer projects x, and Δ, B and C as "
                "gates; B and C are of each head, where the paper has one head.",
                "A_log [heads, states, head_dim]: a state decays by exp(-exp(A_log)·Δ)."},
      .block =
          LayerBlock{
              .expansion = 2,
              .convolution = {.kernel = 4, .bias = true},
              .silu_values = true,
              .shared_gates = {"B", "C"},
              .gates_of_values = true,
              .skip = LayerBlock::Skip::channel,
              .gate = LayerBlock::Gate::silu,
              .notes = {
                  "Gu and Dao 2023, section 3.4 and figure 3; defaults of state-spaces/mamba, "
                  "modules/mamba_simple.py: expansion 2, convolution of 4 with a bias, rank of Δ "
                  "width/16, D = 1. The projection of Δ starts as any other."}}};
}

}  // namespace attn::variants
