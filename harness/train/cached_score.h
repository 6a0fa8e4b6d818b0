// Learned weights scored by decoding from a cache of a number type: what --test-with says beside
// the parameters of the variant, and why that cannot be.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/base/params.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn {

// The axis of this name is of times and errors; here it is of scores. No variant has such a
// parameter.
inline constexpr const char* kCacheParam = "kv_dtype";
ParamSpec cache_param();  // a name of a CacheType

// With which the learned weights are scored.
struct ScoredWith {
  std::map<std::string, ParamValue> params;  // of the variant
  std::optional<CacheType> cache;  // every position is a step from it; nullopt: not asked for
};
ScoredWith scored_with(std::map<std::string, ParamValue> given);

// Why the variant, which can be trained on the task, cannot be scored from such a cache; nullopt:
// it can. `name` is the name of the task.
std::optional<std::string> why_no_cached_score(const std::string& name, const TaskShape& task,
                                               const VariantInfo& variant, const ScoredWith& with,
                                               const Params& training);

}  // namespace attn
