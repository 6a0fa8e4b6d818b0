// qk_norm: softmax attention between queries and keys over their size, so that logits stay bounded.
// l2: unit rows and a learned temperature of each head, Henry et al. 2020, arXiv:2010.04245, eq. 3.
// rms: root of the mean square with learned gains, then 1/√d, as in Qwen3 and after the layer norms
// of Dehghani et al. 2023, arXiv:2302.05442, section 2. Time 4·n²·d FLOPs, memory 3·n·d.
#include <algorithm>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"
#include "variants/reference/attention.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

constexpr double kEpsilonRms = 1e-6, kEpsilonL2 = 1e-12;

class QkNorm final : public Attention {
 public:
  explicit QkNorm(const AttentionConfig& config)
      : Attention(config), rms_(params().text("norm") == "rms") {
    const Shape gains{1, config.head_dim};
    if (rms_) {
      query_gain_ = weight("query_gain", Tensor::full(gains, 1));
      key_gain_ = weight("key_gain", Tensor::full(gains, 1));
    } else {
      // log2(n² - n), the paper's start, of the longest length; at least 1.
      const auto n = static_cast<double>(config.max_len);
      const double start = std::log2(std::max(2.0, n * n - n));
      query_gain_ =
          weight("temperature", Tensor::full({config.heads, 1}, static_cast<real>(start)));
    }
  }

 private:
  RowScale row_scale() const { return {rms_, rms_ ? kEpsilonRms : kEpsilonL2}; }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var queries = scaled_rows(q, query_gain_, row_scale());
    const Var keys = scaled_rows(k, key_gain_, row_scale(), mask.kv_lengths);
    return softmax_attention(
        queries, keys, v,
        {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .scale = rms_ ? 0 : 1.0});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = softmax_cost(shape);
    const auto made =
        sizeof(real) * static_cast<double>(shape.batch * shape.heads *
                                           (shape.q_len + shape.kv_len) * shape.head_dim);
    cost.bytes += 2 * made, cost.peak_bytes += made;
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const double root = std::sqrt(static_cast<double>(position[3]));  // the inner decoder divides
    return scaled_decoder(position, softmax_decoder(position, capacity),
                          {.scale = row_scale(),
                           .query_gain = query_gain_.value(),
                           .key_gain = rms_ ? key_gain_.value() : Tensor(),
                           .logits = rms_ ? 1 : root});
  }

  bool rms_;
  Var query_gain_, key_gain_;  // rms: [1, head_dim]; l2: [heads, 1] and undefined
};

oracle::Array qk_norm_reference(const ReferenceInputs& x) {
  const bool rms = x.params().text("norm") == "rms";
  const auto scaled = [&](const oracle::Array& rows, size_t which) {
    oracle::Array out = rows;
    for (int64_t b = 0; b < rows.batch; ++b)
      for (int64_t h = 0; h < rows.heads; ++h)
        for (int64_t i = 0; i < rows.len; ++i) {
          const double square = oracle::dot(rows.row(b, h, i), rows.row(b, h, i));
          const double size =
              rms ? std::sqrt(square / double(rows.dim) + 1e-6) : std::sqrt(square + 1e-12);
          for (int64_t c = 0; c < rows.dim; ++c) {
            const double gain = rms          ? x.weights[which].at(0, 0, 0, c)
                                : which == 0 ? x.weights[0].at(0, 0, h, 0)
                                             : 1;
            out.at(b, h, i, c) *= gain / size;
          }
        }
    return out;
  };
  return oracle::softmax_attention(scaled(x.q, 0), scaled(x.k, 1), x.v, x.visible(), rms ? 0 : 1);
}

}  // namespace

VariantInfo qk_norm() {
  return {
      .name = "qk_norm",
      .family = "normaliser",
      .summary = "softmax attention between queries and keys over their ℓ2 norm or RMS",
      .paper =
          "Henry et al. 2020, arXiv:2010.04245, eq. 3; rms: Zhang and Sennrich 2019, "
          "arXiv:1910.07467, of queries and keys",
      .cost_formula = "4·n²·d FLOPs, causal 2·n·(n+6)·d; memory 3·n·d",
      .traits = {.causal = true,
                 .cross = true,
                 .convex = true,
                 .permutable = true,
                 .decode = true,
                 .rowwise = true},
      .params = {{"norm",
                  {"l2", "rms"},
                  "l2: a temperature of each head; rms: gains of each channel, then 1/√d, as in "
                  "Qwen3"}},
      .make = make_as<QkNorm>,
      .reference = qk_norm_reference,
      .notes = {"Each head's rows are normalised by themselves, before any rotation that a layer "
                "applies to them afterwards would: a rotation changes no norm, but gains of "
                "channels do not commute with it.",
                "query_gain and key_gain [1, head_dim] are shared by all heads and start at 1; "
                "temperature [heads, 1] starts at log2(n² - n) for the longest length n.",
                "ε is 1e-6 beside the mean square, and 1e-12 beside the sum of squares."}};
}

}  // namespace attn::variants
