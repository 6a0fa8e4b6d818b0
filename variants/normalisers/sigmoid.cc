// sigmoid: weights σ(q·k/√d + b), each pair by itself, without a normaliser of rows. Ramapuram et
// al. 2024, arXiv:2409.04431, eq. 3 and section 4 for b = -ln n. Time 4·n²·d FLOPs, memory n·d.
#include <cmath>

#include "core/simd/row_ops.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"

namespace attn::variants {
namespace {

class SigmoidWeights final : public RowWeights {
 public:
  explicit SigmoidWeights(double bias) : bias_(static_cast<real>(bias)) { by_pair = true; }

  // By e^(-x - b), whose error is relative, since most weights are about 1/n.
  void weigh(const RowStrip& x) const override {
    for (int64_t r = 0; r < x.rows; ++r) {
      real* const row = x.row(0, r);
      exp_row(x.counts[r], row, -1, bias_, row);
      for (int64_t j = 0; j < x.counts[r]; ++j) row[j] = 1 / (1 + row[j]);
    }
  }
  void gradient(const RowStrip& x, const RowStrip&, const RowStrip& g, double*) const override {
    for (int64_t r = 0; r < x.rows; ++r) {
      const real* const weight = x.row(0, r);
      real* const grad = g.row(0, r);
      for (int64_t j = 0; j < x.counts[r]; ++j) grad[j] *= weight[j] * (1 - weight[j]);
    }
  }

 private:
  real bias_;
};

double bias_of(const AttentionConfig& config) {
  return config.params.text("bias_from") == "length"
             ? -std::log(static_cast<double>(config.max_len))
             : config.params.number("bias");
}

class Sigmoid final : public Attention {
 public:
  explicit Sigmoid(const AttentionConfig& config)
      : Attention(config), rule_(std::make_shared<SigmoidWeights>(bias_of(config))) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return strip_attention(q, k, v, mask, rule_);
  }
  Cost do_cost(const AttentionShape& shape) const override { return strip_cost(shape, *rule_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return strip_decoder(position, capacity, rule_);
  }

  RowRule rule_;
};

oracle::Array sigmoid_reference(const ReferenceInputs& x) {
  const double root = std::sqrt(static_cast<double>(x.q.dim));
  double bias = x.params().number("bias");
  if (x.params().text("bias_from") == "length")
    bias = std::log(1 / static_cast<double>(x.config.max_len));  // section 4: n weights sum to 1
  return oracle::weighted_sum(
      x.q, x.v, x.visible(), [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        const double logit = oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j)) / root;
        return 1 / (1 + std::exp(-logit - bias));
      });
}

}  // namespace

VariantInfo sigmoid() {
  return {.name = "sigmoid",
          .family = "normaliser",
          .summary = "sigmoid weights with a constant bias, each pair by itself",
          .paper = "Ramapuram et al. 2024, arXiv:2409.04431, eq. 3",
          .cost_formula = "4·n²·d FLOPs, causal 2·n·(n+48)·d; memory 2·n·d",
          .traits =
              {.causal = true, .cross = true, .permutable = true, .decode = true, .rowwise = true},
          .params = {{"bias_from",
                      {"length", "value"},
                      "length: -ln of the length that the variant is built for; value: `bias`"},
                     ParamSpec("bias", 0.0, "added to every logit", -1e4, 1e4)
                         .when("bias_from", "value")},
          .make = make_as<Sigmoid>,
          .reference = sigmoid_reference,
          .notes = {
              "The bias is one number, of the longest length that the variant is built for: a bias "
              "that followed the row or the current length would make a prefix depend on what "
              "comes after it. In `apply` the longest length is that of the given keys. The "
              "paper's code leaves it 0 by default (bias_from=value).",
              "Weights do not sum to 1: of n equal keys, each has about 1/n. Doubled keys double "
              "the output. The paper's norm after the attention is a layer's."}};
}

}  // namespace attn::variants
