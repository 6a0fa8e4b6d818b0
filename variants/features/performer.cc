// performer: softmax attention estimated without bias by positive random features (FAVOR+), O =
// φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1). Choromanski et al. 2021, arXiv:2009.14794, eqs. 4-7, 10, lemma 1.
// Time O(n·m·d) for m features, memory n·d + m·d; causal by prefix sums. as=lra: relu(x) + 0.001.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/reference/features.h"

namespace attn::variants {
namespace {

bool is_trigonometric(const Params& params) {
  return params.text("as") == "paper" && params.text("features_kind") == "trigonometric";
}

class Performer final : public Attention {
 public:
  static constexpr double kFloor = 1e-3;  // the authors' own: no query is left without weights
  explicit Performer(const AttentionConfig& config) : Attention(config) {
    if (params().text("as") == "lra") return;
    omega_ = weight("omega", directions(config), false);
  }

 private:
  // hyperbolic: ω and -ω next to each other, so that the features are e^{ωx} and e^{-ωx}.
  // trigonometric: sin(ωx) and cos(ωx).
  Tensor directions(const AttentionConfig& config) const {
    const int64_t features = params().integer("features"), dim = config.head_dim;
    const bool pairs = params().text("features_kind") == "hyperbolic";
    const int64_t drawn = pairs || is_trigonometric(params()) ? (features + 1) / 2 : features;
    const Tensor start = random_directions(config.heads, drawn, dim, params().flag("orthogonal"),
                                           rng(config.seed, "performer.omega"));
    return pairs ? opposite_pairs(start) : start;
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = map()});
  }
  Cost do_cost(const AttentionShape& shape) const override { return linear_cost(shape, map()); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map());
  }

  FeatureMap map() const {
    if (!omega_.defined()) return relu_plain(kFloor);
    if (params().text("kernel") == "relu") return relu_random(omega_.value(), kFloor);
    // The scale on both sides makes 1/√d on the product.
    const double scale = std::pow(static_cast<double>(config().head_dim), -0.25);
    return is_trigonometric(params()) ? trigonometric_random(omega_.value(), scale)
                                      : positive_random(omega_.value(), scale);
  }

  Var omega_;  // [heads, features, head_dim]; undefined as=lra
};

oracle::Array performer_reference(const ReferenceInputs& x) {
  const auto with = [&](const oracle::LogFeatures& features) {
    return oracle::kernel_attention(x.q, x.k, x.v, x.visible(), features);
  };
  if (x.params().text("as") == "lra") return with(oracle::relu_plain(Performer::kFloor));
  const oracle::Array& omega = x.weights[0];
  if (x.params().text("kernel") == "relu")
    return with(oracle::relu_random(omega, Performer::kFloor));
  if (is_trigonometric(x.params()))
    return oracle::trigonometric_attention(x.q, x.k, x.v, x.visible(), omega, 0.1);
  return with(oracle::positive_random(omega));
}

}  // namespace

VariantInfo performer() {
  Traits traits = kKernelTraits;
  traits.random = true;
  return {
      .name = "performer",
      .family = "kernel",
      .summary = "softmax attention estimated by positive random features (FAVOR+)",
      .paper = "Choromanski et al. 2021, arXiv:2009.14794, lemma 1, eqs. 4-7, 10",
      .cost_formula =
          "8·n·m·d FLOPs (features 4, sums 4) and 4·n·m; causal about 86·n·(m+d) more inside "
          "chunks of 64; memory n·d, and about 2·m·(d + 96) a thread; as=lra 4·n·d·(d+1) FLOPs",
      .traits = traits,
      .params = {ParamSpec("features", 256, "random features of each head").when("as", "paper"),
                 ParamSpec("kernel", {"softmax", "relu"},
                           "softmax: exp features; relu: the generalised kernel")
                     .when("as", "paper"),
                 ParamSpec("orthogonal", true, "directions orthogonal in blocks of head_dim")
                     .when("as", "paper"),
                 ParamSpec("features_kind", {"positive", "hyperbolic", "trigonometric"},
                           "hyperbolic: each direction and its opposite; trigonometric: sine and "
                           "cosine of features/2 directions, rounded up; lemma 1")
                     .when("as", "paper"),
                 {"as",
                  {"paper", "lra"},
                  "lra: Long Range Arena's features relu(x) + 0.001, none of them random"}},
      .make = make_as<Performer>,
      .reference = performer_reference,
      // The relative error falls as features^-1/2; at this scale and number it is below 1 %.
      .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
        const std::string softmax = "softmax", paper = "paper";
        return VariantInfo::Limit{
            .params = {{"features", int64_t{1} << 14}, {"kernel", softmax}, {"as", paper}},
            .tolerance = 0.02,
            .input_scale = 0.25,
            .sampled = true};
      },
      .skip_reason = [](const AttentionShape&, const Params& params) -> std::optional<std::string> {
        if (is_trigonometric(params) && params.text("kernel") != "softmax")
          return "features_kind=trigonometric is of kernel=softmax";
        if (params.text("features_kind") == "hyperbolic" && params.integer("features") % 2 != 0)
          return "features_kind=hyperbolic pairs each direction with its opposite: features must "
                 "be even";
        return std::nullopt;
      },
      .notes =
          {"as=lra: Long Range Arena's code (but for its ListOps, which is features=2) has no "
           "random features, but relu(x) + 0.001 of each of the d inputs: it estimates no softmax.",
           "kernel=relu: rows are not divided by d^(1/4), as in the authors' code for this kernel. "
           "Popular PyTorch code divides them, which is the same weights with a floor of 0.001·"
           "d^(1/4).",
           "features_kind=trigonometric: weights are without bias and, of rows over "
           "head_dim^(1/4), have a variance of exp(|q|² + |k|²)·(1 - exp(-|q - k|²))²/features, 0 "
           "where q = k and, relative to the weight, largest where q = -k. Popular code divides by "
           "their sum, which has a random sign for N(0, 1) rows, and outputs explode. Here the "
           "divisor is at least 0.1 of its largest value, the sum of exp((|q|² + |k|²)/2)."},
      .convex_if = [](const Params& params, bool) { return !is_trigonometric(params); }};
}

}  // namespace attn::variants
