// The sweep as asked beside the same sweep without what departs; see departures.h. Both are
// resolved, which costs no forecast.
#include "harness/plan/departures.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/add_once.h"
#include "harness/plan/axes.h"
#include "harness/plan/profiles.h"
#include "harness/plan/resolve.h"

namespace attn {
namespace {

constexpr const char* kRepetitions = "repetitions";  // the one axis that is of how, not of what
constexpr const char* kInput = "input";
constexpr const char* kUsualPin = "auto";

using ValuesByName = std::map<std::string, std::set<std::string>>;

ValuesByName settled_values(const Resolved& sweep) {
  ValuesByName values;
  for (const Setting& axis : sweep.axes)
    values[axis.name].insert(axis.values.begin(), axis.values.end());
  for (const Params& training : sweep.training)
    for (const auto& [name, value] : training.values())
      values["training." + name].insert(to_string(value));
  if (sweep.is_halved) values["tune_by"].insert("halving");
  return values;
}

// Inputs of a model, which no profile has: they need a task, which would be idle without them.
bool asks_for_model(const SweepRequest& request) {
  const auto asked = request.axes.find(kInput);
  return asked != request.axes.end() &&
         captures_inputs(axis_values(find_axis(kInput), asked->second));
}

// The same variants, tasks and measures by the profile, or by the defaults.
SweepRequest without_departures(const SweepRequest& request) {
  SweepRequest plain = request;
  plain.training.clear();
  plain.tune.clear();
  plain.tune_by.clear();
  if (asked_profile(request))
    std::erase_if(plain.axes, [&](const auto& axis) {
      return axis.first != "measure" && !(axis.first == kInput && asks_for_model(request));
    });
  else
    plain.axes.erase(kRepetitions);
  return plain;
}

bool is_built_in(const Profile& profile) {
  const auto& known = all_built_in();
  return std::any_of(known.begin(), known.end(),
                     [&](const Profile& other) { return other.text == profile.text; });
}

void add_other_values(const Resolved& asked, const Resolved& plain,
                      std::vector<std::string>& names) {
  const ValuesByName usual = settled_values(plain);
  for (const auto& [name, values] : settled_values(asked)) {
    const auto found = usual.find(name);
    const bool is_part =
        found != usual.end() &&
        std::includes(found->second.begin(), found->second.end(), values.begin(), values.end());
    if (!is_part) add_once(names, name);
  }
}

}  // namespace

std::vector<std::string> departures(const SweepRequest& request) {
  std::vector<std::string> names;
  if (request.sweep_file && !is_built_in(*request.sweep_file)) names.emplace_back("sweep_file");
  if (asked_profile(request) && asks_for_model(request)) names.emplace_back(kInput);
  SweepRequest own = request;
  if (asked_profile(request)) {  // which names the heads, batches and layers of its cells
    if (!request.shapes.empty()) names.emplace_back("shape");
    if (request.tokens > 0) names.emplace_back("tokens");
    if (!request.block.empty()) names.emplace_back("block");
    own.shapes.clear();
    own.tokens = 0;
    own.block.clear();
  }
  const std::vector<Resolved> asked = resolve(own), plain = resolve(without_departures(own));
  const size_t count = std::min(asked.size(), plain.size());  // equal: values make no sub-sweep
  for (size_t i = 0; i < count; i++) add_other_values(asked[i], plain[i], names);
  SweepRequest usual = request;
  usual.timeout_s = 0;
  if (timeout_of(request) != timeout_of(usual)) names.emplace_back("timeout");
  if (request.max_memory_bytes > 0) names.emplace_back("max_memory");
  if (request.precision > 0)
    names.emplace_back("precision");
  else if (request.max_time_s > 0)
    names.emplace_back("max_time");
  if (request.pin != kUsualPin) names.emplace_back("pin");
  return names;
}

}  // namespace attn
