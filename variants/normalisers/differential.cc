// differential: the softmax of the first half of queries and keys, less λ times that of the second
// half, then a norm of each head. Ye et al. 2024, arXiv:2410.05258, eqs. 1-3. Time 4·n²·d FLOPs,
// memory 2·n·d: both softmaxes are subtracted before one product with the values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"
#include "variants/reference/differential.h"

namespace attn::variants {
namespace {

constexpr double kHeadNormEpsilon = 1e-5;

// λ_init as given, or the paper's of this layer, section 2.1.
double start_of(const AttentionConfig& config) {
  const double given = config.params.number("lambda_init");
  return given >= 0 ? given : 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(config.layer));
}

class Differential final : public Attention {
 public:
  explicit Differential(const AttentionConfig& config)
      : Attention(config), start_(start_of(config)), norm_(params().flag("norm")) {
    const Shape half{config.head_dim / 2};
    for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
      lambdas_.push_back(normal_weight(name, half, 0.1));
    if (norm_) gain_ = weight("gain", Tensor::full({1, config.head_dim}, 1));
  }

 private:
  // exp(λ_q1·λ_k1) - exp(λ_q2·λ_k2) + λ_init
  Var lambda() const {
    const auto power = [&](size_t at) {
      return exponential(sum(multiply(lambdas_[at], lambdas_[at + 1])));
    };
    return shift(subtract(power(0), power(2)), start_);
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var by = lambda();
    const Var out = strip_attention(q, k, v, mask, rule(by), by);
    return norm_ ? scale(scaled_rows(out, gain_, kNorm), 1 - start_) : out;
  }
  static RowRule rule(const Var& lambda) {
    return std::allocate_shared<DifferentialWeights>(Recycled<DifferentialWeights>(),
                                                     lambda.value()[0]);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = strip_cost(shape, DifferentialWeights(0));
    const double out = sizeof(real) * static_cast<double>(shape.batch * shape.heads * shape.q_len *
                                                          shape.head_dim);
    if (norm_) cost.bytes += 4 * out, cost.peak_bytes = std::max(cost.peak_bytes, 3 * out);
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const NoGrad no_grad;
    auto decoder = strip_decoder(position, capacity, rule(lambda()));
    if (!norm_) return decoder;
    return normed_decoder(position, std::move(decoder), kNorm, gain_.value(), 1 - start_);
  }

  static constexpr RowScale kNorm = {true, kHeadNormEpsilon};
  double start_;
  bool norm_;
  std::vector<Var> lambdas_;  // of the first and the second softmax: query and key [head_dim / 2]
  Var gain_;                  // [1, head_dim]
};

oracle::Array differential_reference(const ReferenceInputs& x) {
  const double start = start_of(x.config);
  const oracle::Array out =
      oracle::differential_attention(x.q, x.k, x.v, x.weights, start, x.visible());
  return x.params().flag("norm") ? oracle::rms_normalised(out, x.weights[4], 1e-5, 1 - start) : out;
}

}  // namespace

VariantInfo differential() {
  return {
      .name = "differential",
      .family = "normaliser",
      .summary = "the difference of two softmaxes, each of half the channels, then a norm",
      .paper = "Ye et al. 2024, arXiv:2410.05258, eqs. 1-3",
      .cost_formula =
          "4·n²·d FLOPs, causal half; memory 2·n·d, and for each thread two strips "
          "of 1 MiB together or 6·n logits each",
      .traits = {.causal = true,
                 .cross = true,
                 .permutable = true,
                 .decode = true,
                 .rowwise = true,
                 .nonlinear = true},
      .params = {{"lambda_init", -1.0,
                  "start of λ; below 0: the paper's 0.8 - 0.6·e^(-0.3·layer), layers from 0 on", -1,
                  1},
                 {"norm", true, "RMS norm of each head's output, times 1 - lambda_init"}},
      .make = make_as<Differential>,
      .reference = differential_reference,
      .skip_reason = [](const AttentionShape& shape, const Params&) -> std::optional<std::string> {
        if (shape.head_dim % 2 == 0) return std::nullopt;
        return "queries and keys are divided into two halves: head_dim must be even";
      },
      .follows_layer = true,
      .notes = {
          "The paper's two sub-heads of d/2 and one value of d are one head here: the "
          "first half of head_dim of queries and keys, and the second half.",
          "Alone or in a single layer, the paper's lambda_init is that of the first layer, 0.2.",
          "λ = e^(λ_q1·λ_k1) - e^(λ_q2·λ_k2) + λ_init is one number for all heads. "
          "Weights of a row sum to 1 - λ and may be negative, before the norm, which "
          "hides any factor of a row."}};
}

}  // namespace attn::variants
