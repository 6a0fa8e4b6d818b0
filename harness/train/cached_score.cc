// See cached_score.h.
#include "harness/train/cached_score.h"

#include <utility>
#include <vector>

#include "core/base/check.h"
#include "harness/model/encoder.h"
#include "harness/train/settings.h"

namespace attn {

ParamSpec cache_param() {
  std::vector<std::string> names;
  for (const auto& each : names_of(CacheType())) names.emplace_back(each.name);
  return {kCacheParam, std::move(names), "number type of cached keys and values, K or K/V"};
}

ScoredWith scored_with(std::map<std::string, ParamValue> given) {
  ScoredWith with;
  if (const auto asked = given.extract(kCacheParam)) {
    const std::string& name = std::get<std::string>(asked.mapped());
    with.cache = value_named<CacheType>(name);
    ATTN_CHECK(with.cache, "{}={} is not valid; expected {}", kCacheParam, name,
               cache_param().range());
  }
  with.params = std::move(given);
  return with;
}

std::optional<std::string> why_no_cached_score(const std::string& name, const TaskShape& task,
                                               const VariantInfo& variant, const ScoredWith& with,
                                               const Params& training) {
  if (!with.cache) return std::nullopt;
  const std::string type = name_of(*with.cache);
  if (task.outputs > 0)
    return fmt::format("{} has output sequences; a cache of {} is of tasks with labels", name,
                       type);
  if (!task.causal)
    return fmt::format("a cache of {} is of decoding, which is causal, and {} is not", type, name);
  if (!variant.traits.typed_cache)
    return fmt::format("the decoder of {} has no cache of {}", variant.name, type);
  const std::string& positions = training.text("positions");
  if (distances_of(positions_of(positions)) != Distances::none)
    return fmt::format("a cache of {} takes no bias of distances: no positions {}", type,
                       positions);
  AttentionShape shape;
  shape.heads = training.integer("heads");
  shape.q_len = shape.kv_len = task.length;
  shape.head_dim = training.integer("width") / shape.heads;
  shape.causal = true;
  shape.cache = *with.cache;
  return variant.why_no_decoder(shape, Params(variant.name, variant.params, with.params));
}

}  // namespace attn
