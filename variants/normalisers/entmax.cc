// entmax: weights with exact zeros, p = argmax p·z + H_α(p) over the simplex, z = q·k/√d. Peters et
// al. 2019, arXiv:1905.05702, eqs. 9-13; α = 2: sparsemax, Martins and Astudillo 2016,
// arXiv:1602.02068. Time 4·n²·d FLOPs and about eight passes over n² logits; memory n·d.
#include <algorithm>
#include <cmath>
#include <vector>

#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"

namespace attn::variants {
namespace {

class Entmax final : public Attention {
 public:
  explicit Entmax(const AttentionConfig& config)
      : Attention(config), rule_(std::make_shared<EntmaxWeights>(params().number("alpha"))) {}

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

// Weights of the logits z, by bisection of the threshold; of alpha 1, where there is none, softmax.
std::vector<double> entmax_of(const std::vector<double>& z, double alpha) {
  const double top = *std::max_element(z.begin(), z.end());
  const double power = 1 / (alpha - 1);
  std::vector<double> p(z.size());
  const auto total = [&](double theta) {
    double sum = 0;
    for (size_t j = 0; j < z.size(); ++j) {
      const double over = (alpha - 1) * (z[j] - top) - theta;
      p[j] = alpha == 1   ? std::exp(z[j] - top)
             : over <= 0  ? 0
             : power == 2 ? over * over
                          : std::pow(over, power);
      sum += p[j];
    }
    return sum;
  };
  double low = -1, high = 0;
  for (int step = 0; alpha != 1 && step < 100; ++step) {
    const double middle = (low + high) / 2;
    if (middle == low || middle == high) break;  // no number lies between
    (total(middle) >= 1 ? low : high) = middle;
  }
  const double sum = total(low);
  for (double& weight : p) weight /= sum;
  return p;
}

oracle::Array entmax_reference(const ReferenceInputs& x) {
  const double alpha = x.params().number("alpha"), root = std::sqrt(static_cast<double>(x.q.dim));
  const oracle::Visibility seen = x.visible();
  const std::vector<int64_t> rows = oracle::wanted_rows(x.rows, x.q.len);
  oracle::Array out(x.q.batch, x.q.heads, x.q.len, x.v.dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (const int64_t i : rows) {
        std::vector<int64_t> keys;
        std::vector<double> z;
        for (int64_t j = 0; j < x.k.len; ++j) {
          if (!oracle::sees(seen, b, i, j, x.q.len, x.k.len)) continue;
          keys.push_back(j);
          z.push_back(oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j)) / root);
        }
        if (keys.empty()) continue;
        const std::vector<double> p = entmax_of(z, alpha);
        for (size_t at = 0; at < keys.size(); ++at)
          oracle::add_times(p[at], x.v.line(b, h, keys[at]), out.line(b, h, i), out.dim);
      }
  return out;
}

}  // namespace

VariantInfo entmax() {
  return {.name = "entmax",
          .family = "normaliser",
          .summary = "sparse weights in place of softmax: entmax, sparsemax at alpha=2",
          .paper =
              "Peters et al. 2019, arXiv:1905.05702, eqs. 9-13; Martins and Astudillo 2016, "
              "arXiv:1602.02068",
          .cost_formula =
              "4·n²·d FLOPs, causal half, and five passes over n² logits; memory 2·n·d, "
              "and for each thread a strip of 1 MiB or 6·n logits",
          .traits = {.causal = true,
                     .cross = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true},
          .params = {{"alpha", 1.5, "1: softmax, 2: sparsemax; sparser the larger", 1, 2}},
          .make = make_as<Entmax>,
          .reference = entmax_reference,
          .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
            return VariantInfo::Limit{.params = {{"alpha", 1.0}}};
          },
          .notes = {"alpha is a constant, not learned. The threshold is found by Newton's steps on "
                    "the keys that can be in the support, up to rounding; popular code sorts rows "
                    "(alpha 1.5 and 2) or bisects.",
                    "Partial results over sets of keys cannot be merged as those of softmax are: "
                    "a row is read as a whole."}};
}

}  // namespace attn::variants
