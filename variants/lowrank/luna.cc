// luna: learned rows P pack keys and values, softmax(PKᵀ)·[K V], and queries attend to what is
// packed. Ma et al. 2021, arXiv:2106.01540, section 3; causal by running means. Time
// 12·n·latents·d, memory n·d.
#include <algorithm>

#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/latents.h"

namespace attn::variants {
namespace {

class Luna final : public Attention {
 public:
  explicit Luna(const AttentionConfig& config)
      : Attention(config), latents_(params().integer("latents")) {
    rows_ = normal_weight("latents", {config.heads, latents_, config.head_dim}, 1);
  }

 private:
  struct Packed {
    Var keys, values;  // [batch, heads, latents, head_dim]
  };
  Packed packed(const Var& k, const Var& v, const std::vector<int64_t>& lengths) const {
    const Var rows = for_each_entry(rows_, k.dim(0));
    return {softmax_attention(rows, k, k, {.kv_lengths = lengths}),
            softmax_attention(rows, k, v, {.kv_lengths = lengths})};
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (mask.causal) return causal_packing(q, k, v, rows_, mask.kv_lengths);
    const Packed all = packed(k, v, mask.kv_lengths);
    return softmax_attention(q, all.keys, all.values);
  }

  Cost do_cost(const AttentionShape& s) const override {
    if (s.causal) return causal_packing_cost(s, latents_);
    const Cost pack = reading_cost(s, latents_), unpack = answering_cost(s, latents_);
    const auto width = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim);
    const double slots = width * static_cast<double>(latents_);
    Cost cost;
    cost.flops = 2 * pack.flops + unpack.flops;
    cost.backward_flops = 2 * pack.backward_flops + unpack.backward_flops;
    cost.bytes = width * static_cast<double>(2 * s.q_len + 3 * s.kv_len) + 6 * slots;
    cost.peak_bytes =
        std::max(entry_bytes(s, latents_) + slots + pack.peak_bytes, 2 * slots + unpack.peak_bytes);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return causal_packing_decoder(position, capacity, rows_);
  }

  int64_t latents_;
  Var rows_;  // [heads, latents, head_dim]
};

}  // namespace

VariantInfo luna() {
  return {
      .name = "luna",
      .family = "low rank",
      .summary = "learned rows pack keys and values, and queries attend to what is packed",
      .paper = "Ma et al. 2021, arXiv:2106.01540, section 3",
      .cost_formula =
          "12·n·latents·d FLOPs (pack 8, unpack 4), memory n·d; causal 10·n·latents·d "
          "and about 180·n·(latents + d) inside tiles of 64, memory 3·n·latents",
      .traits = {.causal = true,
                 .cross = true,
                 .linear_time = true,
                 .convex = true,
                 .permutable = true,
                 .decode = true,
                 .rowwise = true},
      .params = {latents_param()},
      .make = make_as<Luna>,
      .reference =
          [](const ReferenceInputs& x) {
            const auto attend = x.mask.causal ? oracle::causal_luna : oracle::luna;
            return attend(x.q, x.k, x.v, x.weights[0], x.mask.kv_lengths, x.rows);
          },
      .skip_reason = [](const AttentionShape& shape, const Params&) -> std::optional<std::string> {
        if (!shape.causal || shape.q_len == shape.kv_len) return std::nullopt;
        return "the causal form is of self-attention: its running means stand at the queries";
      },
      .notes =
          {"latents [heads, latents, head_dim] stand for the projected rows P. Keys and values "
           "are packed with the same weights: the paper packs the layer's input, of which keys "
           "and values are then projections, which is the same product.",
           "Causal, softplus to the base 2 takes the place of the softmax that packs, and what "
           "is packed is a mean over the positions so far, as in the authors' code: weights are "
           "positive and do not sum to one, so that it is another function than the form that "
           "sees all. Padding is left out there too, which that code does not do.",
           "What is packed is not handed to the next layer, whose P it is in the paper, unless "
           "block=paper: each layer learns a P of its own."},
      .convex_if = [](const Params&, bool causal) { return !causal; },
      .own_layer = layer_of_luna};
}

}  // namespace attn::variants
