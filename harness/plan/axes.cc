// The list of axes; see axes.h.
#include "harness/plan/axes.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/nearest.h"

namespace attn {

const std::vector<std::string>& measure_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Measure measure : kMeasures) all.emplace_back(name_of(measure));
    return all;
  }();
  return names;
}

namespace {

std::vector<std::string> cache_names() {
  std::vector<std::string> names;
  for (const auto& each : names_of(CacheType())) names.emplace_back(each.name);
  return names;
}

}  // namespace

bool AxisInfo::applies_to(Measure measure) const {
  return std::find(measures.begin(), measures.end(), measure) != measures.end();
}

bool AxisInfo::is_optional(Measure measure) const {
  return std::find(optional_in.begin(), optional_in.end(), measure) != optional_in.end();
}

const std::vector<AxisInfo>& all_axes() {
  constexpr double kLongest =
      1 << 22;  // tokens: far beyond what fits, so that a slip of the finger is an error
  using enum Measure;
  static const std::vector<Measure> everywhere(kMeasures.begin(), kMeasures.end());
  static const std::vector<Measure> batched = {speed, memory, fidelity},
                                    shaped = {speed, memory, fidelity, reach};
  static const std::vector<Measure> run = {speed, memory};
  static const std::vector<AxisInfo> axes = {
      {{"length", 1024, "tokens of a sequence", 1, kLongest}, shaped},
      {{"batch", 1, "sequences at a time", 1, 4096}, batched},
      {{"heads", 4, "attention heads", 1, 1024}, shaped},
      {{"kv_heads", 0,
        "heads of keys and values, each shared by heads / kv_heads query heads; 0: as many as "
        "heads",
        0, 1024},
       run,
       run},
      {{"head_dim", 64, "width of a head", 1, 1024}, shaped},
      {{"dtype",
        {"float32", "bfloat16"},
        "storage of queries, keys, values, output and decode state; sums are in float32"},
       batched,
       batched},
      {{"kv_dtype", cache_names(),
        "what decoding caches keys and values in, keys first (int8/int4); float32: as dtype says"},
       batched,
       batched},
      {{"workload",
        {""},
        "a batch as it is served, 2q2k_32q1kv1k: two prompts of 2,048, and 32 sequences of one "
        "token on caches of 1,024; also the calls that follow"},
       {speed},
       {speed}},
      {{"arrivals", 0.0,
        "requests a second at the server of a workload: a queue simulated on its measured times",
        1e-3, 1e6},
       {speed},
       {speed}},
      {{"packed",
        {""},
        "sequences of unequal lengths one behind the other without padding, beside the same ones "
        "padded: uniform or lognormal (`batch` of them, the longest of `length`), or a list, "
        "8q64_q2k"},
       {speed},
       {speed}},
      {{"mode",
        {"forward", "train", "decode"},
        "train: forward and backward; decode: one token, the last of length; always causal"},
       run},
      {{"scope", {"attention", "layer", "model"}, "how much of the model is measured"}, run},
      {{"layers", kModelLayers,
        "encoder layers: of the model at scope model, of the stack of reach", 1, 64},
       {speed, memory, reach},
       run},
      {{"equal",
        {"width", "parameters", "flops"},
        "what the layers of all variants have in common: their width; or as many parameters or "
        "forward FLOPs as those of full, within 2 %, by other widths"},
       {speed, memory, accuracy},
       {speed, memory, accuracy}},
      {{"causal", false, "hide the future"}, shaped},
      {{"threads", 1, "threads of a cell", 1, 1024}, everywhere},
      {{"seed", 0, "of inputs, weights and data", 0, 1e15}, everywhere},
      {{"input",
        {"random", "needle", "initial", "trained"},
        "what the queries and keys hold; initial, trained: what a model with exact attention reads "
        "on a task (-t), before and after training"},
       {fidelity}},
      {{"input_scale", 1.0, "of queries and keys", 1e-6, 1e6}, {fidelity}},
      {{"repetitions", 9, "samples of a speed cell", 1, 1000}, {speed}},
  };
  return axes;
}

const AxisInfo& find_axis(std::string_view name) {
  std::vector<std::string> names;
  for (const AxisInfo& axis : all_axes()) {
    if (axis.spec.name == name) return axis;
    names.push_back(axis.spec.name);
  }
  throw_error(fmt::format("unknown axis '{}'{} (known: {})", name, nearest_note(name, names),
                          join(names, ", ")));
}

std::vector<std::string> axis_values(const AxisInfo& axis, std::string_view text) {
  std::vector<std::string> values = expand_values("axis " + axis.spec.name, text);
  for (std::string& value : values) value = to_string(axis.spec.parse("axis", value));
  return values;
}

bool is_captured_input(const std::string& value) {
  const auto input = value_named<InputKind>(value);
  return input && is_captured(*input);
}

bool captures_inputs(const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), is_captured_input);
}

}  // namespace attn
