// performer: softmax attention estimated without bias by positive random features (FAVOR+), O =
// φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1). Choromanski et al. 2021, arXiv:2009.14794, eqs. 4-7, 10. Time
// O(n·m·d) for m features, memory n·d + m·d; causal by prefix sums.
#include <cmath>

#include "variants/attention.h"
#include "variants/kernels/feature_maps.h"
#include "variants/kernels/linear_attention.h"
#include "variants/kernels/linear_decoder.h"

namespace attn::variants {
namespace {

class Performer final : public Attention {
 public:
  explicit Performer(const AttentionConfig& config)
      : Attention(config),
        softmax_(params().text("kernel") == "softmax"),
        features_(params().integer("features")),
        omega_(random_directions(config.heads, features_, config.head_dim,
                                 params().flag("orthogonal"),
                                 rng(config.seed, "performer.omega"))) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = map()});
  }

  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = linear_cost(shape, map());
    if (softmax_)
      cost.state_bytes += sizeof(real) * static_cast<double>(shape.batch * shape.heads);  // M
    return cost;
  }

  FeatureMap map() const {
    if (!softmax_) return relu_random(omega_.value(), kFloor);
    // The scale on both sides makes 1/√d on the product.
    return positive_random(omega_.value(), std::pow(static_cast<double>(config().head_dim), -0.25));
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map());
  }

  std::vector<Weight> do_weights() const override { return {{"omega", omega_, false}}; }

  static constexpr double kFloor =
      1e-3;  // of the relu kernel, the authors' own: no query is left without weights

  bool softmax_;
  int64_t features_;
  Var omega_;  // [heads, features, head_dim]
};

}  // namespace

VariantInfo performer() {
  return {.name = "performer",
          .family = "kernel",
          .summary = "softmax attention estimated by positive random features (FAVOR+)",
          .paper = "Choromanski et al. 2021, arXiv:2009.14794, eqs. 4-7, 10",
          .cost_formula =
              "8·n·m·d FLOPs (features 4, sums 4) and 4·n·m; causal about 86·n·(m+d) more inside "
              "chunks of 64; "
              "memory n·d, and about 2·m·(d + 96) a thread",
          .traits = {.causal = true,
                     .cross = true,
                     .linear_time = true,
                     .random = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true},
          .params = {{"features", 256, "random features of each head"},
                     {"kernel", std::vector<std::string>{"softmax", "relu"},
                      "softmax: exp features; relu: the generalised kernel"},
                     {"orthogonal", true,
                      "directions orthogonal in blocks of head_dim, not independent"}},
          .make = make_as<Performer>,
          // The relative error falls as features^-1/2; at this scale and number it is below 1 %.
          .limit =
              [](const AttentionShape&) {
                return VariantInfo::Limit{
                    .params = {{"features", int64_t{1} << 14}, {"kernel", std::string("softmax")}},
                    .tolerance = 0.02,
                    .prepare = {},
                    .input_scale = 0.25};
              },
          .skip_reason = {}};
}

}  // namespace attn::variants
