// induced: learned points attend to the set, then the set attends to them: H = MAB(I, X), O =
// MAB(X, H). Lee et al. 2019, arXiv:1810.00825, eqs. 6, 7, 9 and 10 (ISAB). Time 8·n·latents·d +
// 8·n·d², d = heads · head_dim, memory n·d. No positions: a set.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/latents.h"

namespace attn::variants {
namespace {

class Induced final : public Mixer {
 public:
  explicit Induced(const AttentionConfig& config)
      : Mixer(config), latents_(params().integer("latents")), norm_(params().flag("norm")) {
    points_ = glorot_weight("points", {latents_, width()});
    summarise_ = block("summarise");
    answer_ = block("answer");
  }

 private:
  struct Block {
    Var q, q_bias, k, v, v_bias, out, out_bias;  // [width, width] and [width]
    Var gain[2], shift[2];                       // of the normalisations, [width]
  };

  Block block(const std::string& name) {
    const auto square = [&](const char* part) {
      return glorot_weight(name + part, {width(), width()});
    };
    const auto row = [&](const std::string& part, real value) {
      return weight(name + part, Tensor::full({width()}, value));
    };
    Block b{.q = square("_q"),
            .q_bias = row("_q_bias", 0),
            .k = square("_k"),
            .v = square("_v"),
            .v_bias = row("_v_bias", 0),
            .out = square("_out"),
            .out_bias = row("_out_bias", 0),
            .gain = {},
            .shift = {}};
    for (int i = 0; norm_ && i < 2; ++i) {
      b.gain[i] = row("_gain" + std::to_string(i), 1);
      b.shift[i] = row("_shift" + std::to_string(i), 0);
    }
    return b;
  }

  Var heads_of(const Var& rows) const {  // [batch, len, width] -> [batch, heads, len, head_dim]
    return config().heads == 1 ? reshape(rows, {rows.dim(0), 1, rows.dim(1), rows.dim(2)})
                               : split_heads(rows, config().heads);
  }

  // Q' = q of `from` [batch, len, width], read to the rows `to`.
  Var multihead(const Block& b, const Var& projected, const Var& to,
                const std::vector<int64_t>& lengths) const {
    const Var keys = linear_to_heads(to, b.k, config().heads);
    const Var values = heads_of(linear(to, b.v, b.v_bias));
    const double scale = 1 / std::sqrt(static_cast<double>(width()));
    Var rows = merge_heads(softmax_attention(heads_of(projected), keys, values,
                                             {.kv_lengths = lengths, .scale = scale}));
    rows = normalised(b, 0, add(projected, rows));
    return normalised(b, 1, add(rows, relu(linear(rows, b.out, b.out_bias))));
  }
  Var normalised(const Block& b, int which, const Var& rows) const {
    return norm_ ? layer_norm(rows, b.gain[which], b.shift[which]) : rows;
  }

  // The projected points for each batch entry.
  Var point_rows(int64_t batch) const {
    const Var rows = linear(points_, summarise_.q, summarise_.q_bias);
    return reshape(for_each_entry(reshape(rows, {1, latents_, width()}), batch),
                   {batch, latents_, width()});
  }

  Var do_mix(const Var& x, const Mask& mask) const override {
    const Var rows = zero_padding(x, mask.kv_lengths);
    const Var summary = multihead(summarise_, point_rows(x.dim(0)), rows, mask.kv_lengths);
    const Var projected = linear(rows, answer_.q, answer_.q_bias);
    return zero_padding(multihead(answer_, projected, summary, {}), mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const Cost reading = reading_cost(s, latents_), answering = answering_cost(s, latents_);
    const auto batch = static_cast<double>(s.batch), len = static_cast<double>(s.kv_len),
               points = static_cast<double>(latents_), wide = static_cast<double>(width());
    const double products = 2 * wide * wide * (batch * (4 * len + 3 * points) + points);
    Cost cost;
    cost.flops = reading.flops + answering.flops + products;
    cost.backward_flops = reading.backward_flops + answering.backward_flops + 2 * products;
    cost.bytes = sizeof(real) * wide * (batch * (12 * len + 8 * points) + 10 * wide);
    // Beside keys, values and queries in heads the workspace of an attention, or the sums after it.
    const double row = sizeof(real) * wide * batch, copies = s.heads > 1 ? 2 : 1;
    cost.peak_bytes = std::max({row * (copies * points + 2 * len) + reading.peak_bytes,
                                row * (3 * points + copies * len) + answering.peak_bytes,
                                row * (3 * points + (norm_ ? 6 : 5) * len)});
    return cost;
  }

  int64_t latents_;
  bool norm_;
  Var points_;  // [latents, width]
  Block summarise_, answer_;
};

}  // namespace

VariantInfo induced() {
  return {.name = "induced",
          .family = "low rank",
          .summary = "learned points attend to the set, then the set attends to them",
          .paper = "Lee et al. 2019, arXiv:1810.00825, eqs. 6, 7, 9 and 10 (ISAB)",
          .cost_formula = "8·n·latents·d + 8·n·d² FLOPs, d = heads · head_dim; memory 5·n·d",
          .traits = {.linear_time = true, .permutable = true, .mixer = true},
          .params = {latents_param(16), {"norm", false, "a layer normalisation after each sum"}},
          .make = make_as<Induced>,
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::split(oracle::induced(oracle::merged(x.v), x.weights, x.v.heads,
                                                     x.params().flag("norm"), x.mask.kv_lengths),
                                     x.v.heads);
              },
          .notes = {"A block of the paper reads the layer's input and makes its projections "
                    "itself: MAB(Q, K) = O + relu(O·out), O = Q' + softmax(Q'K'ᵀ/√d)·V', Q' = Q·q. "
                    "Logits are divided by the root of the whole width d, not of a head's.",
                    "The residual is the projected query, as in the paper's code. Keys have no "
                    "bias: one would move no weight. points [latents, width] are the paper's I.",
                    "Padding is hidden from the points; the paper's code has no masks."}};
}

}  // namespace attn::variants
