// Entries of stacks; see stack.h.
#include "variants/api/stack.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/check.h"

namespace attn {
namespace {

std::string layer_text(const LayerVariant& layer) {
  std::string params;
  for (const auto& [name, value] : layer.params)
    params += fmt::format("{}{}={}", params.empty() ? "" : ",", name, to_string(value));
  const std::string& name = layer.variant->name;
  if (params.empty()) return name;
  if (!name.ends_with(']')) return fmt::format("{}[{}]", name, params);
  return fmt::format("{},{}]", name.substr(0, name.size() - 1), params);  // of a paper's block
}

Traits common_traits(const std::vector<LayerVariant>& layers) {
  Traits common = layers[0].variant->traits;
  for (const LayerVariant& layer : layers) {
    const Traits& own = layer.variant->traits;
    for (bool Traits::*all :
         {&Traits::exact, &Traits::causal, &Traits::cross, &Traits::padding, &Traits::linear_time,
          &Traits::linear_memory, &Traits::convex, &Traits::permutable, &Traits::decode,
          &Traits::edges, &Traits::rowwise, &Traits::mixer, &Traits::distance_bias,
          &Traits::typed_cache})
      common.*all = common.*all && own.*all;
    for (bool Traits::*any : {&Traits::random, &Traits::fixed_length, &Traits::gated,
                              &Traits::surrogate_gradients, &Traits::mimicry})
      common.*any = common.*any || own.*any;
  }
  common.bfloat16 = false;
  return common;
}

}  // namespace

LayerVariant layer_of(const VariantInfo& info, const std::map<std::string, ParamValue>& params) {
  const Params complete(info.name, info.params, params), defaults(info.name, info.params);
  LayerVariant layer{std::make_shared<const VariantInfo>(info), {}};
  for (const auto& [name, value] : complete.values())
    if (value != defaults.values().at(name)) layer.params[name] = value;
  return layer;
}

std::string stack_name(const std::vector<LayerVariant>& layers) {
  std::string name;
  for (auto at = layers.begin(); at != layers.end();) {
    const auto next =
        std::find_if(at, layers.end(), [&](const auto& other) { return other != *at; });
    const auto times = next - at;
    name += fmt::format("{}{}{}", name.empty() ? "" : "+",
                        times > 1 ? fmt::format("{}·", times) : "", layer_text(*at));
    at = next;
  }
  return name;
}

std::vector<LayerVariant> one_period(std::vector<LayerVariant> layers) {
  const size_t count = layers.size();
  for (size_t period = 1; period < count; ++period) {
    bool repeats = count % period == 0;
    for (size_t i = period; repeats && i < count; ++i) repeats = layers[i] == layers[i - period];
    if (!repeats) continue;
    layers.resize(period);
    break;
  }
  return layers;
}

VariantInfo stack_of(std::vector<LayerVariant> layers) {
  ATTN_CHECK(layers.size() > 1 && one_period(layers).size() == layers.size(),
             "{} is no stack of layers that differ", stack_name(layers));
  constexpr size_t kLongestName = 200;  // in a row, see results/schema.json
  VariantInfo info;
  info.name = stack_name(layers);
  ATTN_CHECK(info.name.size() <= kLongestName, "the stack '{}...' is longer than {} bytes",
             info.name.substr(0, 60), kLongestName);
  info.family = "hybrid";
  info.summary =
      fmt::format("layers of several variants, the same again every {} layers", layers.size());
  info.traits = common_traits(layers);
  info.always_causal = [layers](const Params&) {
    return std::all_of(layers.begin(), layers.end(), [](const LayerVariant& layer) {
      const VariantInfo& own = *layer.variant;
      return own.always_causal && own.always_causal(Params(own.name, own.params, layer.params));
    });
  };
  info.layers = std::move(layers);
  return info;
}

LayerVariant layer_variant(const VariantInfo& info, const std::map<std::string, ParamValue>& params,
                           int64_t index) {
  if (info.is_stack()) return info.layers[static_cast<size_t>(index) % info.layers.size()];
  return {std::shared_ptr<const VariantInfo>(std::shared_ptr<void>(), &info), params};
}

bool receives_at(const VariantInfo& info, const std::map<std::string, ParamValue>& params,
                 int64_t index) {
  const LayerVariant own = layer_variant(info, params, index);
  for (int64_t earlier = 0; own.variant->carries && earlier < index; ++earlier)
    if (layer_variant(info, params, earlier) == own) return true;
  return false;
}

std::optional<std::string> why_no_repetition(const VariantInfo& info, int64_t layers) {
  const int64_t period = std::max<int64_t>(1, std::ssize(info.layers));
  if (layers % period == 0) return std::nullopt;
  return fmt::format("{} repeats every {} layers, and layers={} is no multiple of {}", info.name,
                     period, layers, period);
}

}  // namespace attn
