// Whether and how a variant is built; see variant_info.h.
#include "variants/api/variant_info.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "variants/api/carrying.h"

namespace attn {

bool LayerVariant::operator==(const LayerVariant& other) const {
  return variant->name == other.variant->name && params == other.params;
}

VariantInfo::Reads VariantInfo::read_by(const Params& chosen) const {
  if (traits.mixer) return {.queries = false, .keys = false};
  if (!is_stack()) return reads ? reads(chosen) : Reads{};
  Reads all{.queries = false, .keys = false};
  for (const auto& [variant, own] : layers) {
    const Reads read = variant->read_by(Params(variant->name, variant->params, own));
    all.queries = all.queries || read.queries;
    all.keys = all.keys || read.keys;
  }
  return all;
}

bool VariantInfo::is_referenced() const {
  return is_stack()
             ? std::all_of(layers.begin(), layers.end(),
                           [](const LayerVariant& layer) { return layer.variant->is_referenced(); })
             : reference != nullptr;
}

std::vector<std::string> VariantInfo::paper_layer_notes() const {
  if (block) return block->notes;
  return own_layer ? own_layer().notes : std::vector<std::string>();
}

std::map<std::string, ParamValue> VariantInfo::at_limit(std::map<std::string, ParamValue> given,
                                                        const Limit& of) const {
  for (const auto& [param, value] : of.params) given[param] = value;
  return effective(params, std::move(given));
}

std::optional<std::string> VariantInfo::why_not(const AttentionShape& shape,
                                                const Params& chosen) const {
  for (const auto& [variant, own] : layers)
    if (auto reason = variant->why_not(shape, Params(variant->name, variant->params, own)))
      return fmt::format("{}: {}", variant->name, *reason);
  if (shape.causal && !traits.causal) return "cannot be causal";
  if (causal_alone && !shape.causal) return "defined for causal attention alone";
  if (shape.q_len != shape.kv_len && !traits.cross) return "has no cross-attention";
  return skip_reason ? skip_reason(shape, chosen) : std::nullopt;
}

bool VariantInfo::lacks_causal(const AttentionShape& shape) const {
  const auto is_alone = [](const LayerVariant& layer) { return layer.variant->causal_alone; };
  return !shape.causal && (causal_alone || std::any_of(layers.begin(), layers.end(), is_alone));
}

std::optional<std::string> VariantInfo::why_no_decoder(const AttentionShape& shape,
                                                       const Params& chosen) const {
  for (const auto& [variant, own] : layers)
    if (auto reason = variant->why_no_decoder(shape, Params(variant->name, variant->params, own)))
      return fmt::format("{}: {}", variant->name, *reason);
  if (!traits.decode) return traits.causal ? "cannot decode" : "cannot decode: it cannot be causal";
  if (no_decoder)
    if (auto reason = no_decoder(chosen)) return reason;
  return why_not(shape, chosen);
}

std::vector<GateInput> VariantInfo::gates_of(int64_t heads, int64_t head_dim,
                                             const Params& chosen) const {
  if (!gates) return {};
  return gates({.heads = heads, .head_dim = head_dim, .params = chosen});
}

std::unique_ptr<Attention> VariantInfo::build(
    AttentionConfig config, const std::map<std::string, ParamValue>& given) const {
  ATTN_CHECK(!is_stack(), "{} is a stack of layers: only a model is made of it", name);
  ATTN_CHECK(config.heads >= 1 && config.head_dim >= 1 && config.max_len >= 1,
             "{}: heads {}, head_dim {} and max_len {} must be at least 1", name, config.heads,
             config.head_dim, config.max_len);
  ATTN_CHECK(!config.causal || traits.causal, "{} cannot be causal", name);
  ATTN_CHECK(
      !traits.typed_cache || reference,
      "{} has trait typed_cache and no reference, which alone tells whether a cache rounds as "
      "it should: add a reference or drop the trait",
      name);
  config.params = Params(name, params, given);
  std::unique_ptr<Attention> attention = make(config);
  attention->traits_ = traits;
  attention->reads_bfloat16_ = reads_bfloat16(attention->params());
  if (gates) attention->gates_ = gates(config);
  ATTN_CHECK(traits.gated == !attention->gates_.empty(), "{} reads {} gates, its trait says {}",
             name, attention->gates_.size(), traits.gated);
  ATTN_CHECK(attention->gates_.size() <= kMostGates, "{} reads {} gates; at most {} are supported",
             name, attention->gates_.size(), kMostGates);
  ATTN_CHECK(!traits.gated || !(traits.cross || traits.mixer || traits.bfloat16),
             "{}: gates of cross-attention, of a mixer or in bfloat16", name);
  ATTN_CHECK(traits.mixer == (as_mixer(*attention) != nullptr),
             "{} is {}a Mixer, its trait says {}", name, traits.mixer ? "not " : "", traits.mixer);
  ATTN_CHECK(carries == (as_carrying(*attention) != nullptr),
             "{} {} something on, its entry says the opposite", name,
             carries ? "does not hand" : "hands");
  ATTN_CHECK(!config.receives || carries, "{} has nothing to receive", name);
  ATTN_CHECK(!carries || !reference || handed_on,
             "{} declares a reference, and none of what it hands on", name);
  ATTN_CHECK(traits.surrogate_gradients == (surrogate != nullptr),
             "{} {} a surrogate, its trait says {}", name, surrogate ? "declares" : "lacks",
             traits.surrogate_gradients);
  ATTN_CHECK(!surrogate || reference, "{} declares a surrogate, and no reference", name);
  return attention;
}

std::function<std::optional<VariantInfo::Limit>(const AttentionShape&)> limit_at_length(
    const std::string& reach, const std::map<std::string, ParamValue>& others) {
  return [=](const AttentionShape& shape) {
    VariantInfo::Limit limit{.params = others, .prepare = {}};
    limit.params[reach] = std::max(shape.q_len, shape.kv_len);
    return limit;
  };
}

const std::vector<std::string>& families() {
  static const std::vector<std::string> list = {
      "exact",     "normaliser", "other scores", "pattern",     "selection",
      "low rank",  "kernel",     "gated",        "state space", "hashing or routing",
      "synthetic", "recurrent",  "convolution",  "control"};
  return list;
}

}  // namespace attn
