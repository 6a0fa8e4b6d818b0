// The definition of the protocol, and what a run says of it; see protocol.h.
#include "harness/run/protocol.h"

#include "core/base/check.h"
#include "harness/measure/speed.h"
#include "harness/measure/workload_inputs.h"
#include "harness/plan/axes.h"
#include "harness/plan/departures.h"
#include "harness/plan/halving.h"
#include "harness/plan/profiles.h"
#include "harness/plan/resolve.h"
#include "harness/plan/rounds.h"
#include "harness/plan/setting_names.h"
#include "harness/plan/training_settings.h"
#include "harness/run/noisy.h"
#include "harness/run/stopping.h"
#include "harness/store/fields.h"
#include "harness/train/optimizer.h"
#include "harness/train/schedule.h"
#include "harness/train/train.h"
#include "harness/verify/verify.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// Of sources that keep them to themselves; a test compares each with its source.
constexpr int kBootstrapResamples = 10000;    // harness/measure/statistics.cc
constexpr double kConfidence = 0.95;          // the same
constexpr double kGradientBound = 1e-3;       // harness/verify/slopes.cc
constexpr double kMovedGradientBound = 1e-2;  // harness/verify/differences.cc
constexpr int kRepeatsOfStopped = 3;          // harness/run/sweeper_rounds.cc

// An axis that came later has no value where nobody gives it one: ids of cells stay, and so does
// the protocol.
Json axes_by_default() {
  Json axes;
  for (const AxisInfo& axis : all_axes())
    if (axis.optional_in.empty()) axes[axis.spec.name] = json_of(axis.spec.value);
  return axes;
}

Json times() {
  const TimingOptions timing;
  return {{"samples", json_of(find_axis("repetitions").spec.value)},
          {"visits", kRounds},
          {"visit", "a process of its own, between those of other variants in random order"},
          {"warmup_s", timing.warmup_s},
          {"least_sample_s", timing.min_sample_s},
          {"sets_of_inputs_in_a_visit", ChangingRow<real>::kSets},
          {"figure", "median of all samples"},
          {"interval", "Student's t over the logarithms of the medians of visits"},
          {"interval_of_one_visit", "bootstrap of the median"},
          {"bootstrap_resamples", kBootstrapResamples},
          {"pin", SweepRequest().pin},
          {"with_precision",
           {{"first_look_after_visits", kFirstLook},
            {"most_visits", kMostVisits},
            {"looked_at_again_below", kNearlyNarrow}}},
          {"marked_as_disturbed",
           {{"witness_below", kFallen},
            {"stolen_time_above", kMostStolen},
            {"lost_cores_a_second_above", kMostSwitches},
            {"repeats_of_a_stopped_visit", kRepeatsOfStopped}}}};
}

Json trainings() {
  const AdamWConfig optimizer;
  return {{"optimizer",
           {{"name", "AdamW"},
            {"beta1", optimizer.beta1},
            {"beta2", optimizer.beta2},
            {"epsilon", optimizer.epsilon}}},
          {"defaults", json_of(training_settings({}))},
          {"defaults_of_wsd", json_of(training_settings({{kSchedule, kWsd}}))},
          {"least_fall_in_validations", kLeastDecay},
          {"new_plateau_above_min_deltas", kFresh},
          {"shortcuts_fitted_on_examples", kShortcutExamples},
          {"usual_learning_rates", with_usual_rates("learning_rate")},
          {"chosen_on", "the mean of validation over the seeds; test scores choose nothing"},
          {"least_steps_of_halving", kLeastSteps}};
}

Json verification() {
  return {
      {"of", "the output, the gradients or the tokens of the last timed pass, at its own shape"},
      {"by", {"reference", "pieces", "identities"}},
      {"reference_budget_s", VerifyOptions().budget_s},
      {"output_bound", "what rounding is allowed at that shape, in the row as verified.bound"},
      {"gradient_bound", kGradientBound},
      {"gradient_bound_by_differences", kMovedGradientBound},
      {"wrong_answer", "the row is failed and has no figure"}};
}

// Of what a profile names, all parameters: those of presets and defaults are not in its text. "*"
// names nothing, so that a new variant makes no new protocol.
void add_meaning(const Profile& profile, const std::string& spec, bool is_task, Json& meanings) {
  if (profile.text.find('"' + spec + '"') == std::string::npos) return;
  SweepRequest request;
  request.variants = {is_task ? exact_reference().name : spec};
  if (is_task) request.tasks = {spec};
  std::vector<std::string> texts;
  for (const Resolved& sweep : resolve(request)) {
    const auto add = [&](const auto& choices) {
      for (const auto& [info, params] : choices)
        texts.push_back(fmt::format("{}[{}]", info->name, params.for_key(info->params).str()));
    };
    if (is_task)
      add(sweep.tasks);
    else
      add(sweep.variants);
  }
  meanings[spec] = texts;
}

Json profiles_by_name() {
  Json all;
  for (const Profile& profile : all_built_in()) {
    Json meanings = Json::object();
    for (const SubSweep& sweep : profile.sweeps) {
      for (const std::string& spec : sweep.variants) add_meaning(profile, spec, false, meanings);
      for (const std::string& spec : sweep.tasks) add_meaning(profile, spec, true, meanings);
    }
    all[profile.info.name] = {{"version", profile.info.version},
                              {"text", hash_of_bytes(profile.text)},
                              {"timeout_s", profile.info.timeout_s},
                              {"names", std::move(meanings)}};
  }
  return all;
}

void write_lines_of(const Json& value, const std::string& indent, std::string& text) {
  for (const auto& [name, inner] : value.items()) {
    text += indent + name;
    if (inner.is_object()) {
      text += "\n";
      write_lines_of(inner, indent + "  ", text);
      continue;
    }
    const char* before = "  ";
    for (const Json& entry : inner.is_array() ? inner : Json::array({inner})) {
      text += before;
      text += entry.is_number() ? fmt::format("{}", entry.get<double>()) : text_of(entry);
      before = ", ";
    }
    text += "\n";
  }
}

}  // namespace

Json protocol_definition() {
  return {{"name", kProtocolName},
          {"cells", kProtocol},
          {"timeout_s", timeout_of({})},
          {"processes", "one a cell, and of a speed cell one a visit"},
          {"axes", axes_by_default()},
          {"confidence_level", kConfidence},
          {"seeds", "each stream of random numbers is drawn from the axis seed and a purpose"},
          {"speed", times()},
          {"accuracy", trainings()},
          {"verification", verification()},
          {"profiles", profiles_by_name()}};
}

const std::string& protocol_hash() {
  static const std::string hash = hash_of(protocol_definition());
  return hash;
}

std::string protocol_page() {
  Json definition = protocol_definition();
  std::string text = fmt::format("{}, hash {}\n\n", kProtocolName, protocol_hash());
  definition.erase("name");
  write_lines_of(definition, "", text);
  return text;
}

Json protocol_of(const SweepRequest& request) {
  return {{"name", kProtocolName}, {"hash", protocol_hash()}, {"departs", departures(request)}};
}

std::string protocol_words(const Json& of_run_line) {
  if (!of_run_line.is_object()) return "";
  std::string text = fmt::format("{} ({})", of_run_line.at("name").get<std::string>(),
                                 of_run_line.at("hash").get<std::string>());
  const char* before = ", departs in ";
  for (const Json& name : of_run_line.at("departs")) {
    text += before + name.get<std::string>();
    before = ", ";
  }
  return text;
}

}  // namespace attn
