// rwkv6: the time mixing of RWKV-6 (Finch): a decay of each channel and position; a query reads
// the state before its own position is written, and its own position with a learned bonus u.
// Peng et al. 2024, arXiv:2404.05892, eqs. 14-19: o_t = r_t·(S_{t-1} + diag(u)·k_tᵀ·v_t), S_t =
// diag(w_t)·S_{t-1} + k_tᵀ·v_t, w = exp(-exp(ω)). Time about 4·n·d² + 64·n·d, memory n·d.
#include <cmath>

#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/gated.h"
#include "variants/reference/states.h"

namespace attn::variants {
namespace {

// Of BlinkDL's demo (RWKV-v5/src/model.py), first layer: -0.1, 0, 0.1 in turn over the channels.
Tensor bonus_start(const AttentionConfig& config) {
  const Tensor bonus({config.heads, config.head_dim});
  for (int64_t n = 0; n < bonus.size(); ++n)
    bonus[n] = static_cast<real>(0.1 * static_cast<double>((n + 1) % 3 - 1));
  return bonus;
}

class Rwkv6 final : public GatedAttention {
 public:
  explicit Rwkv6(const AttentionConfig& config)
      : GatedAttention(config), bonus_(weight("bonus", bonus_start(config))) {}

 private:
  static LogDecay rule() { return {.of = LogDecay::Of::exponential}; }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return chunked_attention(
        {.q = q, .k = k, .v = v, .log_decay = gates[0], .rule = rule(), .bonus = bonus_},
        {.kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    return chunked_cost(s, Decay::channel, WriteRule::bonus);
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return state_decoder(
        position, capacity,
        {.bonus = bonus_.value(),
         .gate_widths = {position[3]},
         .prepare = [dim = position[3]](const StateRows& x) { set_decay(x, dim, dim, rule()); }});
  }

  Var bonus_;  // u [heads, head_dim]
};

// ω starts between -6 and -1, as in the demo's first layer.
std::vector<GateInput> rwkv6_gates(const AttentionConfig& config) {
  std::vector<double> bias(static_cast<size_t>(config.heads * config.head_dim));
  const double last = std::max(1.0, static_cast<double>(bias.size()) - 1);
  for (size_t n = 0; n < bias.size(); ++n)
    bias[n] = -6 + 5 * std::pow(static_cast<double>(n) / last, 0.7);
  return {{.name = "decay",
           .help = "ω of the decay exp(-exp(ω)) of each channel",
           .width = config.head_dim,
           .rank = config.params.integer("gate_rank"),
           .bias = bias}};
}

oracle::Array rwkv6_reference(const ReferenceInputs& x) {
  const oracle::Array decay = oracle::of_gates(
      x.gates[0], x.mask.kv_lengths, [](int64_t, double omega) { return -std::exp(omega); });
  return oracle::state_outputs(
      x.q, x.k, x.v,
      {.log_decay = [&](auto b, auto h, auto t, auto c) { return decay.at(b, h, t, c); },
       .bonus = [&](auto h, auto c) { return x.weights[0].at(0, 0, h, c); }},
      x.mask.kv_lengths, x.rows);
}

}  // namespace

VariantInfo rwkv6() {
  return {
      .name = "rwkv6",
      .family = "gated",
      .summary = "RWKV-6: a gated decay of each channel, read one step late, and a bonus",
      .paper = "Peng et al. 2024, arXiv:2404.05892, eqs. 14-19",
      .cost_formula =
          "4·n·d² FLOPs and about 64·n·d inside tiles of 16; memory n·d; in a layer "
          "2·n·rank·(width + heads·d) more",
      .traits = kGatedTraits,
      .params = {{"gate_rank", 64, "rank of the projection that makes the decay in a layer"}},
      .make = make_as<Rwkv6>,
      .reference = rwkv6_reference,
      .gates = rwkv6_gates,
      .always_causal = [](const Params&) { return true; },
      .notes =
          {"Queries are the paper's receptance r. The mixer alone, unless block=paper: without the "
           "token shift that mixes a position with the one before, without the tanh inside the "
           "decay's projection, and without the norm and the gate of the output.",
           "bonus [heads, head_dim]: u. A position that is padding is read with the state alone.",
           "Where query heads share keys and values (kv_heads), each still has its own gates, and "
           "with them a state of its own."},
      .block = LayerBlock{
          .token_shift = true,
          .shift_rank = 32,
          .shift_powers = {{"q", 0.5}, {"gate", 0.5}},
          .tanh_gates = {"decay"},
          .norm = LayerBlock::Norm::layer_of_heads,
          .norm_epsilon = 64e-5,
          .gate = LayerBlock::Gate::silu,
          .feed_forward = FeedForward::gated_squared,
          .notes = {
              "Peng et al. 2024, section 4.2; BlinkDL/RWKV-LM, RWKV-v5/rwkv_v6_demo.py: a "
              "shift of tokens that depends on the data, a norm of each head, a silu gate; "
              "shares start as in the first layer. In a model, channel mixing follows: a shift "
              "of tokens, squared relu and a gate, with the hidden units that are asked "
              "for; the paper has 3.5 times the width."}}};
}

}  // namespace attn::variants
