// See idle_flags.h.
#include "harness/plan/idle_flags.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "harness/cell/key.h"
#include "harness/plan/axes.h"

namespace attn {
namespace {

// Where accuracy has what the axis asks for.
std::string hint_of_training(const std::string& axis, const std::string& text, bool trains) {
  if (axis == "length")
    return "; a task's length is a parameter of the task, such as mqar[length=128]";
  if (trains && (axis == "kv_heads" || axis == "layers" || axis == "dtype"))
    return fmt::format("; of training it is a setting: --train {}={}", axis, text);
  if (trains && axis == "kv_dtype")
    return fmt::format(
        "; a training caches nothing; add --measure speed, or score by decoding: --test-with "
        "'kv_dtype=[{}]'",
        text);
  return "";
}

}  // namespace

void refuse_idle_flags(const SweepRequest& request, const std::vector<Measure>& measures,
                       const std::vector<std::string>& inputs) {
  const bool trains =
      std::find(measures.begin(), measures.end(), Measure::accuracy) != measures.end();
  std::vector<std::string> names;
  for (const Measure measure : measures) names.emplace_back(name_of(measure));
  for (const auto& [name, text] : request.axes) {
    if (name == "measure") continue;
    const AxisInfo& axis = find_axis(name);
    ATTN_CHECK(std::any_of(measures.begin(), measures.end(),
                           [&](Measure measure) { return axis.applies_to(measure); }),
               "axis {}={} does not apply to measure {}{}", name, text, join(names),
               hint_of_training(name, text, trains));
  }
  const bool captures =
      std::find(measures.begin(), measures.end(), Measure::fidelity) != measures.end() &&
      captures_inputs(inputs);
  ATTN_CHECK(trains || captures || request.tasks.empty(),
             "task '{}' does not apply to measure {}; add accuracy", request.tasks[0], join(names));
  ATTN_CHECK(trains || captures || request.training.empty(),
             "training '{}' does not apply to measure {}; add accuracy", request.training,
             join(names));
  if (captures && measures.size() == 1 &&
      std::all_of(inputs.begin(), inputs.end(), is_captured_input))
    for (const char* given : kDecidedByModel)
      if (const auto axis = request.axes.find(given); axis != request.axes.end())
        throw_error(
            fmt::format("axis {}={} does not apply to input {}: the task and --train decide", given,
                        axis->second, join(inputs)));
  ATTN_CHECK(trains || request.tune.empty(), "tune '{}' does not apply to measure {}; add accuracy",
             request.tune, join(names));
  for (const auto& [key, text] :
       {std::pair("test_with", request.test_with), std::pair("test_on", request.test_on)})
    ATTN_CHECK(trains || text.empty(), "{} '{}' does not apply to measure {}; add accuracy", key,
               text, join(names));
}

void refuse_idle_layers(const SweepRequest& request, const std::vector<Resolved>& sweeps) {
  const auto asked = request.axes.find("layers");
  if (asked == request.axes.end()) return;
  std::string scopes;
  for (const Resolved& sweep : sweeps) {
    if (sweep.measure == Measure::reach) return;
    for (const Setting& axis : sweep.axes) {
      if (axis.name != "scope") continue;
      if (std::count(axis.values.begin(), axis.values.end(), "model") > 0) return;
      scopes = join(axis.values);
    }
  }
  throw_error(fmt::format("axis layers={} applies to scope model alone, and the scope is {}",
                          asked->second, scopes));
}

void refuse_idle_cache(const SweepRequest& request, const std::vector<Resolved>& sweeps) {
  const auto asked = request.axes.find("kv_dtype");
  if (asked == request.axes.end()) return;
  std::string modes;
  for (const Resolved& sweep : sweeps) {
    if (sweep.measure == Measure::fidelity) return;
    for (const Setting& axis : sweep.axes) {
      if (axis.name == "workload") return;
      if (axis.name != "mode") continue;
      if (std::count(axis.values.begin(), axis.values.end(), "decode") > 0) return;
      modes = join(axis.values);
    }
  }
  throw_error(
      fmt::format("axis kv_dtype={} applies to mode decode, a workload and fidelity, and the mode "
                  "is {}; add --mode decode",
                  asked->second, modes));
}

}  // namespace attn
