// cosformer: weights relu(q_i)·relu(k_j)·cos(π·(i - j)/(2·M)), split into features cos·relu(x) and
// sin·relu(x). Qin et al. 2022, arXiv:2202.08791, eqs. 8-12. Time O(n·d²), memory n·d + 2·d²;
// causal by prefix sums. No limit equals softmax.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/reference/features.h"

namespace attn::variants {
namespace {

int64_t span_of(const AttentionConfig& config) {  // M
  const int64_t given = config.params.integer("span");
  return given > 0 ? given : config.max_len;
}

class Cosformer final : public Attention {
 public:
  explicit Cosformer(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const int64_t span = span_of(config()),
                  reach = mask.causal ? k.dim(2) : std::max(q.dim(2), k.dim(2));
    ATTN_CHECK(reach <= span, "cosformer has no weights for {} positions with a span of {}", reach,
               span);
    return linear_attention(
        q, k, v,
        {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = cosine_weighted(span)});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return linear_cost(shape, cosine_weighted(shape.kv_len));
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t span = span_of(config());
    ATTN_CHECK(capacity <= span, "cosformer has no weights for {} positions with a span of {}",
               capacity, span);
    return linear_decoder(position, capacity, cosine_weighted(span));
  }
};

oracle::Array cosformer_reference(const ReferenceInputs& x) {
  const int64_t given = x.params().integer("span");
  const auto span = static_cast<double>(given > 0 ? given : x.config.max_len);  // M of eq. 10
  const auto kernel = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < x.q.dim; ++c)
      sum += std::fmax(x.q.at(b, h, i, c), 0) * std::fmax(x.k.at(b, h, j, c), 0);
    const auto distance = static_cast<double>(i + x.k.len - x.q.len - j);
    return sum * std::cos(std::numbers::pi * distance / (2 * span));
  };
  return oracle::kernel_ratio(x.q, x.v, x.visible(), kernel, oracle::no_scale, 0);
}

std::optional<std::string> why_beyond_span(const AttentionShape& shape, const Params& params) {
  const int64_t span = params.integer("span"),
                reach = shape.causal ? shape.kv_len : std::max(shape.q_len, shape.kv_len);
  if (reach <= (span > 0 ? span : shape.kv_len)) return {};
  if (span > 0)
    return fmt::format("{} positions exceed span={}, the distance where weights end", reach, span);
  return fmt::format(
      "{} queries are more than the {} keys, whose number is the span, the distance where weights "
      "end; span={} suffices",
      shape.q_len, shape.kv_len, shape.q_len);
}

}  // namespace

VariantInfo cosformer() {
  Traits traits = kKernelTraits;
  traits.permutable = traits.rowwise = false;
  traits.convex = false;  // the weights of a query may all be 0
  return {
      .name = "cosformer",
      .family = "kernel",
      .summary = "kernel attention by relu features that fade with the distance as a cosine",
      .paper = "Qin et al. 2022, arXiv:2202.08791, eqs. 8-12",
      .cost_formula =
          "8·n·d·(d+1) FLOPs, causal about 258·n·d more inside chunks of 64; memory n·d, and "
          "about 2·d·(d + 192) a thread",
      .traits = traits,
      .params =
          {{"span", 0,
            "distance M at which a weight has faded to 0; 0: the longest length that the layer "
            "is built for",
            0, 1'000'000'000}},
      .make = make_as<Cosformer>,
      .reference = cosformer_reference,
      .skip_reason = why_beyond_span,
      .notes = {
          "M is fixed. The authors' code takes the length of the sequence: the same tokens then "
          "get other outputs in a longer sequence or behind more padding, so that causal "
          "attention would depend on what comes later. Where M is 0, it is the longest length that "
          "the variant is built for, in `apply` that of the given keys.",
          "A query whose relu features meet none of the keys' gets zeros; the authors' code "
          "divides by 1e-6 instead.",
          "Queries and keys are aligned at their ends, where lengths differ."}};
}

}  // namespace attn::variants
