// latent: learned rows read the sequence, attend to each other, and are read by the queries. Jaegle
// et al. 2021, arXiv:2103.03206, section 3 (Perceiver), and arXiv:2107.14795 (queries that read).
// Time 8·n·latents·d + layers·4·latents²·d, memory n·d.
#include <algorithm>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/latents.h"

namespace attn::variants {
namespace {

class Latent final : public Attention {
 public:
  explicit Latent(const AttentionConfig& config)
      : Attention(config), latents_(params().integer("latents")) {
    const int64_t heads = config.heads, d = config.head_dim;
    rows_ = normal_weight("latents", {heads, latents_, d}, 1);
    const auto square = [&](const std::string& name) {
      return normal_weight(name, {heads, d, d}, 1 / std::sqrt(static_cast<double>(d)));
    };
    for (int64_t i = 0; i < params().integer("layers"); ++i) {
      const std::string layer = "layer" + std::to_string(i);
      layers_.push_back({square(layer + "_q"), square(layer + "_k"), square(layer + "_v")});
    }
  }

 private:
  struct Layer {
    Var q, k, v;  // [heads, head_dim, head_dim]
  };

  Var read(const Var& k, const Var& v, const std::vector<int64_t>& lengths) const {
    return softmax_attention(for_each_entry(rows_, k.dim(0)), k, v, {.kv_lengths = lengths});
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    Var z = read(k, v, mask.kv_lengths);  // [batch, heads, latents, head_dim]
    for (const Layer& layer : layers_)
      z = add(z, softmax_attention(matmul(z, layer.q), matmul(z, layer.k), matmul(z, layer.v)));
    return softmax_attention(q, z, z);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const Cost reading = reading_cost(s, latents_), answering = answering_cost(s, latents_);
    AttentionShape among = s;
    among.q_len = among.kv_len = latents_;
    const Cost layer = softmax_cost(among);
    const auto width = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim),
               layers = static_cast<double>(layers_.size());
    const double slots = width * static_cast<double>(latents_);
    const double product = 2 * static_cast<double>(s.batch * s.heads * latents_) *
                           static_cast<double>(s.head_dim * s.head_dim);
    Cost cost;
    cost.flops = reading.flops + answering.flops + layers * (layer.flops + 3 * product);
    cost.backward_flops = reading.backward_flops + answering.backward_flops +
                          layers * (layer.backward_flops + 6 * product);
    cost.bytes = width * static_cast<double>(2 * s.q_len + 2 * s.kv_len) + (6 + 8 * layers) * slots;
    cost.peak_bytes = std::max({entry_bytes(s, latents_) + reading.peak_bytes,
                                layers > 0 ? 4 * slots + std::max(layer.peak_bytes, 2 * slots) : 0,
                                slots + answering.peak_bytes});
    return cost;
  }

  int64_t latents_;
  Var rows_;  // [heads, latents, head_dim]
  std::vector<Layer> layers_;
};

}  // namespace

VariantInfo latent() {
  return {
      .name = "latent",
      .family = "low rank",
      .summary = "learned rows read the sequence, attend to each other, and are read",
      .paper = "Jaegle et al. 2021, arXiv:2103.03206, section 3, and arXiv:2107.14795",
      .cost_formula = "8·n·latents·d + layers·(4·latents²·d + 6·latents·d²) FLOPs; memory n·d",
      .traits = {.cross = true,
                 .linear_time = true,
                 .permutable = true,
                 .rowwise = true,
                 .nonlinear = true},
      .params = {latents_param(), {"layers", 1, "of attention between the learned rows", 0, 64}},
      .make = make_as<Latent>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::latent(x.q, x.k, x.v, x.weights, x.params().integer("layers"),
                                  x.mask.kv_lengths, x.rows);
          },
      .notes = {"The attention of a Perceiver as one layer: rows read keys and values, pass "
                "`layers` layers of attention with a residual, and are the keys and values "
                "that queries read: projections of them would be products with those of a "
                "layer's queries and outputs. Its feed-forward layers and normalisations are "
                "left out; the residual of the first reading too, so that a sequence without "
                "valid keys gets zeros.",
                "latents [heads, latents, head_dim] are drawn with deviation 1, as projected "
                "queries have it; the paper draws 0.02 before a normalisation."}};
}

}  // namespace attn::variants
