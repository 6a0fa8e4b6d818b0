// See cached_score.h.
#include "harness/train/cached_score.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "harness/model/decoded_rows.h"
#include "harness/train/settings.h"

namespace attn {

namespace {

ParamSpec cache_param() {
  std::vector<std::string> names;
  for (const auto& each : names_of(CacheType())) names.emplace_back(each.name);
  return {kCacheParam, std::move(names), "number type of cached keys and values, K or K/V"};
}

// Of a prompt on such a task.
std::optional<std::string> why_no_prompt(const std::string& name, const TaskShape& task,
                                         int64_t prompt) {
  if (!task.per_token)
    return fmt::format("{}={} is of tasks with a label at each position, and {} labels sequences",
                       kPromptParam, prompt, name);
  if (prompt >= task.length)
    return fmt::format("{}={} leaves no step of the {} positions of {}; expected 1 to {}",
                       kPromptParam, prompt, task.length, name, task.length - 1);
  return std::nullopt;
}

}  // namespace

std::vector<ParamSpec> decoding_params() {
  return {cache_param(), {kPromptParam, 1, "first positions, which are appended at once"}};
}

ScoredWith scored_with(std::map<std::string, ParamValue> given) {
  ScoredWith with;
  if (const auto asked = given.extract(kCacheParam)) {
    const std::string& name = std::get<std::string>(asked.mapped());
    with.cache = value_named<CacheType>(name);
    ATTN_CHECK(with.cache, "{}={} is not valid; expected {}", kCacheParam, name,
               cache_param().range());
  }
  if (const auto asked = given.extract(kPromptParam)) {
    with.prompt = std::get<int64_t>(asked.mapped());
    ATTN_CHECK(with.prompt >= 1, "{}={} is not valid; expected 1 or more", kPromptParam,
               with.prompt);
    if (!with.cache) with.cache = CacheType::float32;
  }
  with.params = std::move(given);
  return with;
}

std::optional<std::string> why_no_cached_score(const std::string& name, const TaskShape& task,
                                               const VariantInfo& variant, const ScoredWith& with,
                                               const Params& training) {
  const Params params(variant.name, variant.params, with.params);
  if (auto why = why_no_steps(variant, params, task.causal, with.prompt > 0)) return why;
  if (!with.cache) return std::nullopt;
  const std::string type = name_of(*with.cache);
  if (task.outputs > 0)
    return fmt::format("{} has output sequences; a cache of {} is of tasks with labels", name,
                       type);
  if (!task.causal)
    return fmt::format("a cache of {} is of decoding, which is causal, and {} is not", type, name);
  if (with.prompt > 0)
    if (auto why = why_no_prompt(name, task, with.prompt)) return why;
  if (with.prompt > 0 && !variant.traits.typed_cache)
    return fmt::format("{}={} is of decoders with caches of every {}, and that of {} has none",
                       kPromptParam, with.prompt, kCacheParam, variant.name);
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
  return variant.why_no_decoder(shape, params);
}

std::optional<std::string> why_no_labels_behind(int64_t prompt,
                                                const std::vector<Batch>& examples) {
  int64_t first = prompt;
  for (const Batch& batch : examples) {
    const int64_t width = std::ssize(batch.targets) / batch.size;  // of one sequence
    for (int64_t i = 0; i < std::ssize(batch.targets); ++i)
      if (batch.targets[static_cast<size_t>(i)] != kIgnoredLabel)
        first = std::min(first, i % width);
  }
  if (first >= prompt) return std::nullopt;
  const std::string most = first > 0 ? fmt::format("; at most {}={}", kPromptParam, first) : "";
  return fmt::format(
      "a score is of labels behind the prompt, and the first stands at position {}, "
      "counted from 0, inside {}={}{}",
      first, kPromptParam, prompt, most);
}

}  // namespace attn
