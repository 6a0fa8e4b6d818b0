// Learned weights scored by decoding from a cache of a number type, or behind a prompt: what
// --test-with says beside the parameters of the variant, and why that cannot be.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/params.h"
#include "harness/model/encoder.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn {

// The axis of the first name is of times and errors; here it is of scores. No variant has such
// parameters.
inline constexpr const char* kCacheParam = "kv_dtype";
inline constexpr const char* kPromptParam = "prompt";
std::vector<ParamSpec> decoding_params();  // a name of a CacheType, and a number of positions

// With which the learned weights are scored.
struct ScoredWith {
  std::map<std::string, ParamValue> params;  // of the variant
  // Every position behind the prompt is a step from it; nullopt: neither was asked for. A prompt
  // alone asks for float32.
  std::optional<CacheType> cache;
  int64_t prompt = 0;  // positions that are appended at once; 0: none
};
ScoredWith scored_with(std::map<std::string, ParamValue> given);

// Why the variant, which can be trained on the task, cannot be scored from such a cache or behind
// such a prompt; nullopt: it can. `name` is the name of the task.
std::optional<std::string> why_no_cached_score(const std::string& name, const TaskShape& task,
                                               const VariantInfo& variant, const ScoredWith& with,
                                               const Params& training);

// Why the score of these examples would not be of steps alone: the forward pass answers the prompt,
// and a label stands in it. nullopt: no label does.
std::optional<std::string> why_no_labels_behind(int64_t prompt, const std::vector<Batch>& examples);

}  // namespace attn
