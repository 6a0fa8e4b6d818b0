// gla: linear attention whose state decays, in each channel of the key, by a gate of the position.
// Yang et al. 2023, arXiv:2312.06635, eqs. 3-4 and section 4.4: a = σ(x·W₁·W₂ + b)^(1/temperature).
// Time about 4·n·d² + 64·n·d, memory n·d; nothing is normalised. No limit equals softmax.
#include <cmath>

#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Gla final : public GatedAttention {
 public:
  explicit Gla(const AttentionConfig& config)
      : GatedAttention(config), temperature_(params().number("temperature")) {}

 private:
  double tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }
  LogDecay rule() const { return LogDecay::of_sigmoid(temperature_); }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return chunked_attention({.q = q, .k = k, .v = v, .log_decay = gates[0], .rule = rule()},
                             {.kv_lengths = mask.kv_lengths, .scale = tau()});
  }

  Cost do_cost(const AttentionShape& s) const override { return chunked_cost(s, Decay::channel); }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    return state_decoder(
        position, capacity,
        {.scale = tau(), .gate_widths = {dim}, .prepare = [dim, rule = rule()](const StateRows& x) {
           set_decay(x, dim, dim, rule);
         }});
  }

  double temperature_;
};

std::vector<GateInput> gla_gates(const AttentionConfig& config) {
  const int64_t dim = config.head_dim;
  return {{.name = "decay",
           .help = "x of the decay σ(x)^(1/temperature) of each channel",
           .width = dim,
           .rank = config.params.integer("gate_rank"),
           .bias = std::vector<double>(static_cast<size_t>(config.heads * dim), 0.0)}};
}

oracle::Array gla_reference(const ReferenceInputs& x) {
  const double temperature = x.params().number("temperature");
  const oracle::Array log_decay = oracle::of_gates(
      x.gates[0], x.mask.kv_lengths,
      [temperature](int64_t, double gate) { return -oracle::softplus(-gate) / temperature; });
  return oracle::decayed_attention(x.q, x.k, x.v, log_decay, {},
                                   1 / std::sqrt(static_cast<double>(x.q.dim)), x.mask.kv_lengths,
                                   x.rows);
}

}  // namespace

VariantInfo gla() {
  return {.name = "gla",
          .family = "gated",
          .summary = "linear attention with a gated decay of each channel",
          .paper = "Yang et al. 2023, arXiv:2312.06635, eqs. 3-4 and section 4.4",
          .cost_formula =
              "4·n·d² FLOPs and about 64·n·d inside tiles of 16; memory n·d; in a layer "
              "2·n·rank·(width + heads·d) more",
          .traits = kGatedTraits,
          .params = {{"gate_rank", 16, "rank of the projection that makes the gate in a layer"},
                     {"temperature", 16.0, "decay is σ(x)^(1/temperature)", 1e-3, 1e9}},
          .make = make_as<Gla>,
          .reference = gla_reference,
          .gates = gla_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"The mixer alone, unless block=paper: without the paper's RMS norm and output "
                    "gate of each head.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them a state of its own."},
          .block =
              LayerBlock{.norm = LayerBlock::Norm::rms_of_heads,
                         .gate = LayerBlock::Gate::silu,
                         .notes = {"Yang et al. 2023, section 4.4; defaults of fla, layers/gla.py: "
                                   "no convolution, norm and swish gate of each head.",
                                   "Keys are as wide as values; fla's are half as wide."}}};
}

}  // namespace attn::variants
