// A sweep file, with a small stand-in for the catalogues: what is read keeps its promises, and each
// sweep's axes have combinations. A part of the names is unknown, so that every way out is taken.
#include <algorithm>

#include "core/base/params.h"
#include "harness/plan/axes.h"
#include "harness/plan/sweep_file.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

const Profile& stand_in(const std::string& name) {
  static const Profile quick = {
      .info = {.name = "quick", .summary = "", .version = 3},
      .sweeps = {{.measure = Measure::speed, .variants = {"full"}, .axes = {{"length", "64"}}},
                 {.measure = Measure::accuracy, .tasks = {"mqar"}}},
      .text = ""};
  ATTN_CHECK(name == "quick", "unknown profile '{}'", name);
  return quick;
}

void require_name(const std::string& text, std::string_view first) {
  ATTN_CHECK(parse_spec(text).name.starts_with(first), "unknown name '{}'", text);
}

SweepNames small_names() {
  SweepNames names;
  names.variants = {"full", "linear"};
  names.tasks = {"mqar", "copy"};
  names.variant = [](const std::string& text) { require_name(text, "l"); };
  names.task = [](const std::string& text) { require_name(text, "m"); };
  names.training = [](const std::string& text) { cross_product(parse_settings(text)); };
  names.condition = [](const Condition& condition) {
    for (const Spec& spec : condition.variants) require_name(spec.name, "l");
  };
  names.sweep = [](const SubSweep& sweep) { parse_settings(sweep.tune); };
  names.profile = stand_in;
  return names;
}

void check_sweep(const SubSweep& sweep) {
  std::vector<Setting> axes;
  for (const auto& [name, text] : sweep.axes) {
    const AxisInfo& axis = find_axis(name);
    require(axis.applies_to(sweep.measure), "an axis of another measure: " + name);
    axes.push_back({name, axis_values(axis, text)});
  }
  const bool trains = sweep.measure == Measure::accuracy,
             reads_models = trains || sweep.measure == Measure::fidelity;
  require(reads_models || (sweep.tasks.empty() && sweep.training.empty()),
          "a sweep without a model has training");
  require(trains || (sweep.tune.empty() && sweep.test_with.empty() && sweep.test_on.empty()),
          "a sweep that scores nothing has tuning or tests");
  std::vector<Choice> choices;
  if (!accepts([&] { choices = combinations(axes, sweep.rules.zips); })) return;
  require(!choices.empty(), "a sweep without a combination");
  for (const Choice& choice : choices)
    require(choice.size() == axes.size(), "a combination lacks an axis");
}

}  // namespace

void sweep(std::string_view bytes) {
  static const SweepNames names = small_names();
  Profile profile;
  if (!accepts([&] { profile = parse_sweep_file("a.toml", bytes, names); })) return;
  require(!profile.sweeps.empty() && profile.text == bytes, "a file without a sweep");
  require(profile.info.version >= 1 && profile.info.timeout_s > 0, "version or timeout");
  for (const SubSweep& sweep : profile.sweeps) check_sweep(sweep);
}

}  // namespace attn::fuzz
