// performer: softmax attention estimated without bias by positive random features (FAVOR+), O =
// φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1). Choromanski et al. 2021, arXiv:2009.14794, eqs. 4-7, 10. Time
// O(n·m·d) for m features, memory n·m + m·d; causal by prefix sums.
#include <cmath>

#include "variants/attention.h"
#include "variants/kernels/feature_maps.h"
#include "variants/kernels/linear_attention.h"

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
    LinearOptions options{.causal = mask.causal, .kv_lengths = mask.kv_lengths};
    if (!softmax_)
      return linear_attention(relu_features(q, omega_, kFloor),
                              relu_features(k, omega_, kFloor, mask.kv_lengths), v, options);
    const double scale = std::pow(static_cast<double>(config().head_dim),
                                  -0.25);  // on both sides: 1/√d on the product
    const Var queries = positive_features(q, omega_, scale).phi;  // a query's own divisor cancels
    const PositiveFeatures keys = positive_features(k, omega_, scale, mask.kv_lengths);
    options.log_scale = keys.log_scale;
    return linear_attention(queries, keys.phi, v, options);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    const double rows =
        static_cast<double>(shape.batch * shape.heads * (shape.q_len + shape.kv_len));
    const double m = static_cast<double>(features_), d = static_cast<double>(shape.head_dim),
                 size = sizeof(real);
    Cost cost = linear_cost(shape, features_);
    cost.flops += 2 * rows * m * d;
    cost.backward_flops += 2 * rows * m * d;  // of rows alone: omega has no gradient
    cost.bytes += size * rows * (d + m);
    const double scales =
        softmax_ ? static_cast<double>(shape.batch * shape.heads * shape.kv_len) : 0;
    cost.peak_bytes += size * (rows * m + scales);
    if (softmax_)
      cost.state_bytes +=
          size * static_cast<double>(shape.batch * shape.heads);  // the running maximum
    return cost;
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
          .summary = "softmax attention estimated by positive random features (FAVOR+)",
          .paper = "Choromanski et al. 2021, arXiv:2009.14794, eqs. 4-7, 10",
          .cost_formula =
              "8·n·m·d FLOPs (features 4, sums 4) and 4·n·m; causal 160·n·(m+d) more inside chunks "
              "of 128; "
              "memory 2·n·m + n·d and m·(d+1) a chunk of 512, causal of 128",
          .traits = {.causal = true,
                     .cross = true,
                     .linear_time = true,
                     .random = true,
                     .convex = true,
                     .permutable = true},
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
