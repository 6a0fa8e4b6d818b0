// Builds a small attention to ask it; see forgetting.h.
#include "variants/api/forgetting.h"

namespace attn {

std::optional<Forgets> forgets_of(const VariantInfo& variant, const Params& params) {
  constexpr int64_t kLength = 32;
  const AttentionShape shape{.q_len = kLength, .kv_len = kLength, .head_dim = 8, .causal = true};
  if (variant.is_stack()) {
    for (const auto& [layer, own] : variant.layers)
      if (const auto found = forgets_of(*layer, Params(layer->name, layer->params, own)))
        return found;
    return std::nullopt;
  }
  if (!variant.traits.decode || variant.why_no_decoder(shape, params)) return std::nullopt;
  const auto attention = variant.build(
      {.heads = 1, .head_dim = shape.head_dim, .max_len = kLength, .causal = true, .params = {}},
      params.values());
  const Forgetting* const forgetting = as_forgetting(*attention);
  if (!forgetting) return std::nullopt;
  return Forgets{*forgetting->forgets_from(), forgetting->forgets_prompts_alone()};
}

}  // namespace attn
