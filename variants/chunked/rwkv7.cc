// rwkv7: the time mixing of RWKV-7 (Goose): a generalised delta rule; decay, removed key and
// written key differ. Peng et al. 2025, arXiv:2503.14456, eqs. 8-17: S_t = diag(w_t)·S_{t-1} -
// (κ̂_t⊙a_t)ᵀ·(κ̂_t·S_{t-1}) + k̃_tᵀ·v_t, o_t = r_t·S_t, κ̂ = k⊙k_k of length 1, k̃ = k⊙(1 + (a -
// 1)⊙k_a), a = σ(rate), w = exp(-e^-½·σ(decay)). Time about 8·n·d² + 240·n·d, memory 5·n·d.
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/api/written_keys.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/key_rows.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Rwkv7 final : public GatedAttention, public WritesKeys {
 public:
  explicit Rwkv7(const AttentionConfig& config)
      : GatedAttention(config),
        // Near the starts of BlinkDL's code (RWKV-v7/rwkv_v7_demo.py), without its slope.
        removed_(weight("k_k", Tensor::full({config.heads, config.head_dim}, real(0.71)))),
        replaced_(weight("k_a", Tensor::full({config.heads, config.head_dim}, real(1.02)))) {}

  Var written_keys(const Var& k, std::span<const Var> gates) const override {
    return replaced_keys(k, sigmoid(gates[1]), replaced_);
  }

 private:
  static LogDecay rule() { return {.of = LogDecay::Of::sigmoid, .factor = -std::exp(-0.5)}; }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const Var erase = unit_rows(k, 1, lengths, removed_);  // κ̂ [batch, heads, len, head_dim]
    const Var rate = sigmoid(zero_padding(gates[1], lengths));  // a
    return chunked_attention({.q = q,
                              .k = replaced_keys(zero_padding(k, lengths), rate, replaced_),
                              .v = v,
                              .log_decay = gates[0],
                              .rule = rule(),
                              .erase = erase,
                              .remove = multiply(erase, rate)},
                             {.kv_lengths = lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::channel, WriteRule::removal);
    const double bytes =
        sizeof(real) * static_cast<double>(s.batch * s.heads * s.kv_len * s.head_dim);
    cost.bytes += 10 * bytes;  // κ̂ of k, a, k̃ of k and a, κ̂⊙a
    cost.peak_bytes += 4 * bytes;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return state_decoder(position, capacity,
                         {.removal = true,
                          .gate_widths = {position[3], position[3]},
                          .prepare = [dim = position[3], removed = removed_,
                                      replaced = replaced_](const StateRows& x) {
                            set_decay(x, dim, dim, rule());
                            const real* const by = replaced.value().data() + x.head * dim;
                            std::copy_n(x.k, dim, x.erase);
                            unit_row(1, removed.value().data() + x.head * dim, dim, x.erase);
                            for (int64_t c = 0; c < dim; ++c) {
                              const real rate = 1 / (1 + std::exp(-x.gates[1][c]));
                              x.remove[c] = x.erase[c] * rate;
                              x.k[c] *= 1 + (rate - 1) * by[c];
                            }
                          }});
  }

  Var removed_, replaced_;  // k_k, k_a [heads, head_dim]
};

// The bias of the decay as in the code's first layer: from -5.5 to 0.5, and a zigzag of each head.
std::vector<GateInput> rwkv7_gates(const AttentionConfig& config) {
  const int64_t dim = config.head_dim, count = config.heads * dim;
  const auto of = [](int64_t x) { return static_cast<double>(x); };
  std::vector<double> decay, rate;
  for (int64_t n = 0; n < count; ++n) {
    const double share = of(n) / of(std::max<int64_t>(1, count - 1));
    const double side = dim > 1 ? 2 * of(n % dim) / of(dim - 1) - 1 : 0;
    const double zigzag = side * std::abs(side);
    decay.push_back(-5.5 + 6 * share + 2.5 * zigzag);
    rate.push_back(-0.19 + 0.3 * zigzag + 0.4 * (share - 0.5));
  }
  const int64_t rank = config.params.integer("gate_rank");
  return {{.name = "decay",
           .help = "x of the decay exp(-e^-½·σ(x)) of each channel",
           .width = dim,
           .rank = rank,
           .bias = decay},
          {.name = "rate",
           .help = "x of the removed share a = σ(x) of each channel",
           .width = dim,
           .rank = rank,
           .bias = rate}};
}

// k̃ = k⊙(1 + (a - 1)⊙k_a)
oracle::Array rwkv7_written(const ReferenceInputs& x) {
  oracle::Array keys = x.k;
  for (int64_t b = 0; b < keys.batch; ++b)
    for (int64_t h = 0; h < keys.heads; ++h)
      for (int64_t t = 0; t < keys.len; ++t)
        for (int64_t c = 0; c < keys.dim; ++c) {
          const double rate = 1 / (1 + std::exp(-x.gates[1].at(b, h, t, c)));
          keys.at(b, h, t, c) *= 1 + (rate - 1) * x.weights[1].at(0, 0, h, c);
        }
  return keys;
}

LayerBlock rwkv7_layer() {
  return {
      .token_shift = true,
      .shift_powers = {{"q", 0.2},
                       {"k", 0.7},
                       {"v", 0.7},
                       {"gate.decay", 0.9},
                       {"gate.rate", 0.9},
                       {"gate", 0.2}},
      .value_residual = true,
      .tanh_gates = {"decay"},
      .norm = LayerBlock::Norm::layer_of_heads,
      .norm_epsilon = 64e-5,
      .bonus = -0.04,
      .gate = LayerBlock::Gate::linear,
      .gate_rank = -2,
      .gate_sigmoid_inside = true,
      .feed_forward = FeedForward::squared,
      .notes = {"Peng et al. 2025, the section on time mixing; BlinkDL/RWKV-LM, "
                "RWKV-v7/train_temp/src/model.py, RWKV_Tmix_x070: a shift of tokens with a "
                "share of each projection, a norm of each head, the bonus (Σ r⊙k̃⊙ρ)·v after "
                "it, then the gate σ(x·G_1)·G_2, whose rank follows the width as in the code.",
                "In a model, the first layer hands its values on to all later ones, which mix "
                "theirs with them: v + (v_1 - v)⊙σ(bias + (x_v·A)·B), where x_v are the shifted "
                "rows that values are projected from. A, B and the bias are first.down, "
                "first.up and first.bias: of rank max(32, 1.7·√width), rounded to a multiple "
                "of 32, with the starts of the code, but that A starts near 0, not at it. "
                "Older code starts the bias at 1. A layer alone is the first. All starts else "
                "are those of the code's first layer, whatever the layer.",
                "The rank of decay and rate is gate_rank; the code has max(32, 2.5·√width), "
                "rounded to a multiple of 32. ε of norms as in the code for heads of 64.",
                "In a model, channel mixing follows: a shift of tokens and squared relu, with "
                "the hidden units that are asked for; the paper has 4 times the width."}};
}

}  // namespace

VariantInfo rwkv7() {
  return {.name = "rwkv7",
          .family = "gated",
          .summary = "RWKV-7: a generalised delta rule with removed and written keys of their own",
          .paper = "Peng et al. 2025, arXiv:2503.14456, eqs. 8-17",
          .cost_formula =
              "8·n·d² FLOPs and about 240·n·d inside tiles of 16; memory 5·n·d; in a layer "
              "4·n·rank·(width + heads·d) more",
          .traits = kGatedTraits,
          .params = {{"gate_rank", 32, "rank of the projections that make the gates in a layer"}},
          .make = make_as<Rwkv7>,
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::goose_attention(x.q, x.k, x.v, x.gates[0], x.gates[1], x.weights[0],
                                               x.weights[1], x.mask.kv_lengths, x.rows);
              },
          .written_keys = rwkv7_written,
          .gates = rwkv7_gates,
          .always_causal = [](const Params&) { return true; },
          .notes =
              {"Queries are the paper's receptance r. The mixer alone, unless block=paper: without "
               "token shift, the tanh inside the decay's projection, the norm, the bonus after "
               "the norm, the gate of the output and the value residual from the first layer of a "
               "model.",
               "k_k, k_a [heads, head_dim]: of the removed and the written key. κ̂ is divided "
               "by √(|x|² + 1e-6).",
               "Where query heads share keys and values (kv_heads), each still has its own "
               "gates, and with them a state of its own."},
          .block = rwkv7_layer()};
}

}  // namespace attn::variants
