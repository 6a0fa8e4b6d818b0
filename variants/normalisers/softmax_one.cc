// softmax_one: softmax with a sink, a logit s_h of each head that carries no value, so that a row
// may attend to nothing: softmax attention × σ(L_i - s_h), L_i the log-sum-exp of row i. s = 0:
// Miller 2023, "Attention is off by one"; learned: OpenAI 2025, gpt-oss. Time 4·n²·d FLOPs, memory
// 2·n·d.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"
#include "variants/reference/attention.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class SoftmaxOne final : public Attention {
 public:
  explicit SoftmaxOne(const AttentionConfig& config) : Attention(config) {
    const Tensor start = Tensor::zeros({config.heads});
    sinks_ = params().flag("learned") ? weight("sinks", start) : Var(start);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return joined_softmax(
        softmax_with_log_sum(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths}), {},
        sinks_);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = softmax_cost(shape);
    const auto rows = static_cast<double>(shape.batch * shape.heads * shape.q_len);
    const double out = sizeof(real) * rows * static_cast<double>(shape.head_dim);
    cost.bytes += 2 * out;
    // Beside the forward's workspace log_sum, then the scaled output.
    cost.peak_bytes = std::max(cost.peak_bytes, 2 * out) + sizeof(real) * rows;
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return softmax_decoder(position, capacity, -1, sinks_.value());
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    return typed_softmax_decoder(position, capacity, cache, {.sinks = sinks_.value()});
  }

  Var sinks_;  // [heads]
};

// One more key of logit s and value 0.
oracle::Array softmax_one_reference(const ReferenceInputs& x) {
  const double tau = 1 / std::sqrt(static_cast<double>(x.q.dim));
  oracle::Array sums(x.q.batch, x.q.heads, x.q.len, 1), ones(x.k.batch, x.k.heads, x.k.len, 1);
  const auto product = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return tau * oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j));
  };
  // e^(z - m) beside e^(s - m), for the largest logit m of all.
  double most = 0;
  oracle::weighted_sum(x.q, ones, x.visible(), [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return most = std::fmax(most, product(b, h, i, j));
  });
  std::fill(ones.x.begin(), ones.x.end(), 1.0);
  const oracle::OfPair weight = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return std::exp(product(b, h, i, j) - most);
  };
  sums = oracle::weighted_sum(x.q, ones, x.visible(), weight);
  oracle::Array out = oracle::weighted_sum(x.q, x.v, x.visible(), weight);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.len; ++i) {
        const double sink = x.weights.empty() ? 0 : x.weights[0].at(0, 0, 0, h);
        for (int64_t c = 0; c < out.dim; ++c)
          out.at(b, h, i, c) /= sums.at(b, h, i, 0) + std::exp(sink - most);
      }
  return out;
}

}  // namespace

VariantInfo softmax_one() {
  return {
      .name = "softmax_one",
      .family = "normaliser",
      .summary = "softmax with one more logit, 0 or learned, that carries no value (a sink)",
      .paper = "Miller 2023, \"Attention is off by one\"; learned: OpenAI 2025, gpt-oss",
      .cost_formula = "4·n²·d FLOPs, causal 2·n·(n+6)·d; memory 2·n·d",
      .traits = {.causal = true,
                 .cross = true,
                 .permutable = true,
                 .decode = true,
                 .typed_cache = true,
                 .rowwise = true},
      .params = {{"learned", false,
                  "a logit of each head is learned, from 0 on, as in gpt-oss; else it is 0"}},
      .make = make_as<SoftmaxOne>,
      .reference = softmax_one_reference,
      .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"learned", true}}, .prepare = [](const Attention& a) {
                                    for (const Weight& w : a.weights())
                                      w.value.set_value(Tensor::full(w.value.shape(), -1e4));
                                  }};
      },
      .notes = {"Weights sum to σ(L - s) < 1, so that a row may attend to nothing; a row without "
                "keys is 0. The sink is not multiplied by 1/√d and is never masked.",
                "sinks [heads] are logits in natural units."}};
}

}  // namespace attn::variants
