// softcap: softmax attention whose logits are held within ±cap: cap·tanh(q·k/(√d·cap)). Gemma 2,
// arXiv:2408.00118, section 2. Time 4·n²·d FLOPs and a tanh and an exponential of each pair, memory
// n·d.
#include <cmath>

#include "core/simd/row_ops.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"

namespace attn::variants {
namespace {

class CappedSoftmax final : public RowWeights {
 public:
  explicit CappedSoftmax(double cap) : cap_(static_cast<real>(cap)) { kept = 1; }

  void weigh(const RowStrip& x) const override {
    for (int64_t r = 0; r < x.rows; ++r) soften(x.counts[r], x.row(0, r), nullptr);
  }
  RowStrip keep(const RowStrip& x, const RowStrip& slopes, const RowStrip&) const override {
    for (int64_t r = 0; r < x.rows; ++r) soften(x.counts[r], x.row(0, r), slopes.row(0, r));
    return x;
  }
  void gradient(const RowStrip& x, const RowStrip& slopes, const RowStrip& g,
                double*) const override {
    for (int64_t r = 0; r < x.rows; ++r) {
      const int64_t n = x.counts[r];
      const real *const weights = x.row(0, r), *const slope = slopes.row(0, r);
      real* const grads = g.row(0, r);
      softmax_rows_backward(1, n, weights, grads, grads);
      for (int64_t j = 0; j < n; ++j) grads[j] *= slope[j];
    }
  }

 private:
  // Logits to weights; `slopes`, where not null, gets the derivatives of the capped logits.
  void soften(int64_t n, real* row, real* slopes) const {
    const real over_cap = 1 / cap_;
    for (int64_t j = 0; j < n; ++j) row[j] *= over_cap;
    tanh_row(n, row, row);
    for (int64_t j = 0; slopes && j < n; ++j) slopes[j] = 1 - row[j] * row[j];
    for (int64_t j = 0; j < n; ++j) row[j] *= cap_;
    softmax_rows(1, n, row, row);
  }

  real cap_;
};

class Softcap final : public Attention {
 public:
  explicit Softcap(const AttentionConfig& config)
      : Attention(config), rule_(std::make_shared<CappedSoftmax>(params().number("cap"))) {}

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

oracle::Array softcap_reference(const ReferenceInputs& x) {
  const double root = std::sqrt(static_cast<double>(x.q.dim)), cap = x.params().number("cap");
  return oracle::average(x.q, x.v, x.visible(), [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return cap * std::tanh(oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j)) / (root * cap));
  });
}

}  // namespace

VariantInfo softcap() {
  return {.name = "softcap",
          .family = "normaliser",
          .summary = "softmax attention whose logits are held within a bound, as in Gemma 2",
          .paper = "Gemma Team 2024, arXiv:2408.00118, section 2",
          .cost_formula = "4·n²·d FLOPs, causal 2·n·(n+48)·d; memory 2·n·d",
          .traits = {.causal = true,
                     .cross = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true},
          .params = {{"cap", 50.0, "bound of the logits", 1e-3, 1e6}},
          .make = make_as<Softcap>,
          .reference = softcap_reference,
          .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
            return VariantInfo::Limit{.params = {{"cap", 1e6}}};
          },
          .notes = {"Gemma 2 has 50 for attention and 30 for the output's logits. x-transformers "
                    "(softclamp_logits) has 50 too.",
                    "The bound acts on scaled logits, before the mask. A large cap is exact "
                    "attention."}};
}

}  // namespace attn::variants
