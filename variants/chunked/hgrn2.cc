// hgrn2: gated linear attention whose keys are what the state forgets: k = 1 - f. Keys are not
// projected. Qin et al. 2024, arXiv:2404.07904, eq. 6: S_t = diag(f_t)·S_{t-1} + (1 - f_t)ᵀ·v_t,
// o_t = q_t·S_t/√d, f = γ + (1 - γ)·σ(x). Time about 4·n·d² + 64·n·d, memory n·d. No limit equals
// softmax.
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Hgrn2 final : public GatedAttention {
 public:
  explicit Hgrn2(const AttentionConfig& config)
      : GatedAttention(config), bound_(params().number("lower_bound")) {}

 private:
  double tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }

  Var do_gated_forward(const Var& q, const Var&, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const Var open = zero_padding(gates[0], lengths);  // [batch, heads, len, head_dim]
    Var k = scale(open, -1), log_decay = gates[0];
    k = sigmoid(k);  // an op at a time, so that two arrays are alive at once
    if (bound_ > 0) {
      k = scale(k, 1 - bound_);
      log_decay = sigmoid(open);
      log_decay = scale(log_decay, 1 - bound_);
      log_decay = shift(log_decay, bound_);
      log_decay = logarithm(log_decay);
    }
    return chunked_attention({.q = q,
                              .k = k,
                              .v = v,
                              .log_decay = log_decay,
                              .rule = bound_ > 0 ? LogDecay{} : LogDecay::of_sigmoid(1)},
                             {.kv_lengths = lengths, .scale = tau()});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::channel);
    const double bytes =
        sizeof(real) * static_cast<double>(s.batch * s.heads * s.kv_len * s.head_dim);
    cost.bytes += (bound_ == 0 ? 4 : 14) * bytes;  // two or three ops for keys, four for decays
    cost.peak_bytes += (bound_ == 0 ? 1 : 2) * bytes;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const auto gamma = static_cast<real>(bound_);
    return state_decoder(position, capacity,
                         {.scale = tau(),
                          .gate_widths = {position[3]},
                          .prepare = [dim = position[3], gamma](const StateRows& x) {
                            for (int64_t c = 0; c < dim; ++c) {
                              const real gate = x.gates[0][c];
                              x.decay[c] = gamma + (1 - gamma) / (1 + std::exp(-gate));
                              x.k[c] = (1 - gamma) / (1 + std::exp(gate));
                            }
                          }});
  }

  double bound_;  // γ
};

std::vector<GateInput> hgrn2_gates(const AttentionConfig& config) {
  return {{.name = "forget", .help = "x of the decay γ + (1 - γ)·σ(x)", .width = config.head_dim}};
}

oracle::Array hgrn2_reference(const ReferenceInputs& x) {
  const double gamma = x.params().number("lower_bound");
  const auto map = [&](auto f) { return oracle::of_gates(x.gates[0], x.mask.kv_lengths, f); };
  const oracle::Array keys = map(
      [gamma](int64_t, double gate) { return 1 - (gamma + (1 - gamma) / (1 + std::exp(-gate))); });
  const oracle::Array log_decay = map([gamma](int64_t, double gate) {
    return std::log(gamma + (1 - gamma) / (1 + std::exp(-gate)));
  });
  return oracle::decayed_attention(x.q, keys, x.v, log_decay, {},
                                   1 / std::sqrt(static_cast<double>(x.q.dim)), x.mask.kv_lengths,
                                   x.rows);
}

}  // namespace

VariantInfo hgrn2() {
  return {
      .name = "hgrn2",
      .family = "gated",
      .summary = "gated linear attention with the forgotten share as key",
      .paper = "Qin et al. 2024, arXiv:2404.07904, eq. 6",
      .cost_formula =
          "4·n·d² FLOPs and about 64·n·d inside tiles of 16; memory 4·n·d; in a layer "
          "2·n·width·heads·d more, and no keys",
      .traits = kGatedTraits,
      .params = {{"lower_bound", 0.0, "γ, the least decay; the paper lets it rise by layer", 0.0,
                  1.0}},
      .make = make_as<Hgrn2>,
      .reference = hgrn2_reference,
      .reads = [](const Params&) { return VariantInfo::Reads{.keys = false}; },
      .gates = hgrn2_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {"The mixer alone, unless block=paper: without swish of queries and the norm of the "
                "output. The paper's lower bounds are learned, a cumulative softmax over layers, 0 "
                "in the first; here γ is lower_bound.",
                "Where query heads share values (kv_heads), each still has its own gates, and with "
                "them a state of its own."},
      .block =
          LayerBlock{.silu_queries = true,
                     .norm = LayerBlock::Norm::rms,
                     .notes = {"Qin et al. 2024, section 3; defaults of fla, layers/hgrn2.py: "
                               "swish of queries, a norm of all heads, no output gate. The "
                               "authors' hgru2_1d.py has silu of values and sigmoid of queries."}}};
}

}  // namespace attn::variants
