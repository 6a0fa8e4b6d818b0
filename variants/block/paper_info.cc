// What the catalogue says of a block: the mixer's entry, with the traits of a mixer; see
// block.h.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/plugin_name.h"
#include "variants/block/block.h"
#include "variants/block/paper_parts.h"

namespace attn {
namespace {

constexpr std::string_view kAfter = "[block=paper]";

Traits traits_of(const VariantInfo& base) {
  const LayerBlock& block = base.block.value();
  Traits traits = base.traits;
  traits.exact = traits.cross = traits.convex = traits.edges = traits.rowwise = false;
  traits.bfloat16 = traits.gated = traits.distance_bias = traits.mimicry = false;
  traits.surrogate_gradients = traits.typed_cache = false;
  traits.mixer = traits.nonlinear = true;
  if (block.convolution.kernel > 0 || block.token_shift || block.key_value_shift)
    traits.permutable = false;
  return traits;
}

// The shape that the mixer inside sees.
AttentionShape inner_shape(const LayerBlock& block, AttentionShape shape) {
  shape.heads *= block.expansion;
  shape.batch *= block.value_parts;
  return shape;
}

}  // namespace

std::string paper_name(std::string_view variant) { return fmt::format("{}{}", variant, kAfter); }

std::string_view inside_paper(std::string_view text) {
  if (!text.ends_with(kAfter)) return {};
  const std::string_view inside = text.substr(0, text.size() - kAfter.size());
  return is_plugin_name(inside) ? inside : std::string_view();  // of a stack: none
}

bool asks_for_layer(const VariantInfo& info) {
  return std::none_of(info.params.begin(), info.params.end(),
                      [](const ParamSpec& param) { return param.name == kBlockParam; });
}

Params mixer_params(const VariantInfo& base, const Params& given) {
  std::map<std::string, ParamValue> values = given.values();
  values.erase(kBlockParam);
  return {base.name, base.params, values};
}

VariantInfo paper_block(const VariantInfo& base) {
  const ParamSpec param{kBlockParam, {"paper"}, "the paper's layer around the mixer"};
  if (base.own_layer) {
    VariantInfo info = base.own_layer();
    info.name = paper_name(base.name);
    info.params.push_back(param);
    return info;
  }
  if (!base.block) {  // every shape is skipped, with the reason
    VariantInfo info = base;
    info.name = paper_name(base.name);
    info.params.push_back(param);
    info.skip_reason = [&base](const AttentionShape&, const Params&) {
      return std::optional<std::string>("block=paper: " + base.lacks_block);
    };
    return info;
  }
  const LayerBlock& block = *base.block;
  VariantInfo info;
  info.name = paper_name(base.name);
  info.family = base.family;
  info.summary = fmt::format("the paper's layer around {}", base.name);
  info.paper = base.paper;
  info.cost_formula = "as counted: the mixer's, and the products of the block's projections";
  info.traits = traits_of(base);
  info.params = base.params;
  info.params.push_back(param);
  info.make = [&base](const AttentionConfig& config) -> std::unique_ptr<Attention> {
    return std::make_unique<PaperBlock>(base, config);
  };
  if (base.reference)
    info.reference = [&base](const ReferenceInputs& x) { return paper_reference(base, x); };
  info.carries = block.value_residual;
  if (base.reference && info.carries)
    info.handed_on = [&base](const ReferenceInputs& x) { return paper_handed_on(base, x); };
  info.skip_reason = [&base, &block](const AttentionShape& shape,
                                     const Params& given) -> std::optional<std::string> {
    if (!block.key_dim.empty() && given.integer(block.key_dim) > shape.head_dim)
      return fmt::format("block=paper: {}={} numbers of a key do not fit into heads of {}",
                         block.key_dim, given.integer(block.key_dim), shape.head_dim);
    return base.why_not(inner_shape(block, shape), mixer_params(base, given));
  };
  if (base.no_decoder)
    info.no_decoder = [&base](const Params& given) {
      return base.no_decoder(mixer_params(base, given));
    };
  if (block.norm != LayerBlock::Norm::none) info.rounding = std::max(info.rounding, 4.0);
  info.follows_layer = base.follows_layer;
  const bool sees_the_past =
      block.convolution.kernel > 0 || block.token_shift || block.key_value_shift;
  info.causal_alone = base.causal_alone || (sees_the_past && !base.always_causal);
  info.always_causal = base.always_causal;
  info.rounds_with_all = base.rounds_with_all;
  info.feed_forward = block.feed_forward;
  info.notes = block.notes;
  return info;
}

}  // namespace attn
