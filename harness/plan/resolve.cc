// Sub-sweeps of the profile overlaid by what was asked; see resolve.h.
#include "harness/plan/resolve.h"

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "harness/plan/axes.h"
#include "harness/plan/filter.h"
#include "harness/plan/idle_flags.h"
#include "harness/plan/packings.h"
#include "harness/plan/profiles.h"
#include "harness/plan/setting_names.h"
#include "harness/plan/shapes.h"
#include "harness/plan/training_settings.h"
#include "harness/plan/typed_choice.h"
#include "harness/plan/halving.h"
#include "harness/plan/variant_choices.h"
#include "harness/plan/workloads.h"
#include "harness/train/cached_score.h"
#include "harness/train/mimicry.h"
#include "harness/train/train.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// Those of which there is one value.
std::vector<Setting> settled(const Spec& spec) {
  std::vector<Setting> single;
  for (const Setting& setting : spec.settings)
    if (setting.values.size() == 1) single.push_back(setting);
  return single;
}

// What was asked for, each entry standing on the profile's entries of the same name: they lend the
// parameters not given, but for those of which the profile compares several values. Nothing asked:
// the profile's own; nothing there either: everything known.
std::vector<Spec> chosen(const std::vector<std::string>& asked,
                         const std::vector<std::string>& offered,
                         const std::vector<std::string>& known) {
  std::vector<Spec> specs, base;
  for (const std::string& text : offered) base.push_back(parse_spec(text));
  for (const std::string& text : asked) {
    Spec spec = parse_spec(text);
    bool lent = false;
    for (const Spec& other : base) {
      for (auto& [layer, times] : spec.layers)
        if (layer.name == other.name) layer.settings = overlay(settled(other), layer.settings);
      if (other.name != spec.name || !other.layers.empty()) continue;
      specs.push_back({spec.name, overlay(settled(other), spec.settings)});
      lent = true;
    }
    if (!lent) specs.push_back(spec);
  }
  if (asked.empty()) specs = base;
  if (specs.empty())
    for (const std::string& name : known) specs.push_back({name, {}});
  return specs;
}

// The values of --block for a variant, and for the layers of a stack, which name none themselves.
void ask_for_block(const std::string& text, Spec& spec) {
  if (text.empty()) return;
  for (auto& [layer, times] : spec.layers) ask_for_block(text, layer);
  const bool has_own =
      std::any_of(spec.settings.begin(), spec.settings.end(),
                  [](const Setting& setting) { return setting.name == kBlockParam; });
  const VariantInfo* const info = variant_named(spec.name);
  if (spec.layers.empty() && !has_own && (!info || asks_for_layer(*info)))
    spec.settings.push_back({kBlockParam, expand_values("--block", text)});
}

template <class Infos>
std::vector<std::string> registered_names(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.push_back(info.name);
  return names;
}

template <class Infos>
bool holds(const Infos& infos, const std::string& name) {
  return std::any_of(infos.begin(), infos.end(),
                     [&](const auto& info) { return info.name == name; });
}

std::vector<std::pair<const TaskInfo*, Params>> resolve_tasks(const std::vector<Spec>& specs) {
  std::vector<std::pair<const TaskInfo*, Params>> resolved;
  for (const Spec& spec : specs) {
    ATTN_CHECK(holds(all_tasks(), spec.name) || !holds(all_variants(), spec.name),
               "'{0}' is a variant, not a task: use -v {0}", spec.name);
    const TaskInfo& info = find_task(spec.name);
    const std::vector<ParamSpec> accepted = info.accepted();
    for (const Choice& choice : cross_product(spec.settings))
      resolved.emplace_back(&info, info.resolve(typed_choice(info.name, accepted, choice)));
  }
  return resolved;
}

// Decoding is causal whatever the default is. To ask for it alone and for what is not causal is a
// contradiction; where other modes are asked for too, `causal` is theirs.
void settle_causal(const SweepRequest& request, std::vector<Setting>& axes) {
  const std::vector<std::string> decode_alone = {"decode"};
  Setting *mode = nullptr, *causal = nullptr;
  for (Setting& axis : axes) {
    if (axis.name == "mode") mode = &axis;
    if (axis.name == "causal") causal = &axis;
  }
  if (!mode || mode->values != decode_alone) return;
  const auto& asked = causal->values;
  const bool asks_false = std::find(asked.begin(), asked.end(), "false") != asked.end();
  ATTN_CHECK(!asks_false || !request.axes.count("causal"),
             "axis causal=false does not apply to mode decode, which is always causal");
  causal->values = {"true"};
}

// A comparison with variants that cannot be fitted would not be of what was asked for.
void check_mimicry(const Resolved& resolved) {
  for (const Params& training : resolved.training)
    for (const auto& [info, params] : resolved.variants)
      if (const auto why = why_no_mimicry(*info, params.values(), training)) throw_error(*why);
}

// Without what the choice names and has no effect beside its other values.
std::map<std::string, ParamValue> without_idle(const std::vector<ParamSpec>& specs,
                                               const Choice& choice,
                                               std::map<std::string, ParamValue> values) {
  const std::map<std::string, ParamValue> counting = effective(specs, values);
  for (const auto& [name, text] : choice)
    if (!counting.count(name)) values.erase(name);
  return values;
}

// "rounds=[1,2];buckets=1,chunk=64": grids one after the other, each over the parameters `own` of
// the variant or the task. A parameter of `more` counts only where a text names it. `key`
// names the text, and `example` a right one.
template <class Info>
std::vector<Params> tested_params(const Info& info, const Params& own, const std::string& text,
                                  std::string_view key, std::string_view example,
                                  const std::vector<ParamSpec>& more = {}) {
  std::vector<Params> tested;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const auto choices = cross_product(parse_settings(text.substr(begin, end - begin)));
    std::set<std::string> with_idle;
    for (const Choice& choice : choices) {
      ATTN_CHECK(!choice.empty(), "{} '{}' has an empty part; expected such as {}", key, text,
                 example);
      std::vector<ParamSpec> specs = info.params;
      for (const ParamSpec& one : more)
        if (std::any_of(choice.begin(), choice.end(),
                        [&](const auto& named) { return named.first == one.name; }))
          specs.push_back(one);
      std::map<std::string, ParamValue> values = own.values();
      for (auto& [name, value] : typed_choice(info.name, specs, choice)) values[name] = value;
      // Of a grid, as of a variant's: what counts with some choices only is left out beside the
      // others, and what is then the same is scored once.
      const size_t given = values.size();
      if (choices.size() > 1) values = without_idle(specs, choice, std::move(values));
      Params params(info.name, specs, values);
      if (values.size() == given || with_idle.insert(params.str()).second)
        tested.push_back(std::move(params));
    }
    begin = end + 1;
  }
  return tested;
}

// A round's trainings are of fewer steps, by which its rows are told from those of a result.
void check_halving(const Resolved& sweep, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    ATTN_CHECK(setting.name != "steps" || setting.values.size() == 1,
               "tune-by halving needs one number of steps, not {}", join(setting.values));
  for (const Params& training : sweep.training)
    ATTN_CHECK(training.integer("steps") >= kLeastSteps,
               "tune-by halving needs {} steps or more, not {}", kLeastSteps,
               training.integer("steps"));
}

Resolved resolve_one(const SubSweep& sweep, const SweepRequest& request) {
  Resolved resolved;
  resolved.measure = sweep.measure;
  resolved.rules = sweep.rules;
  std::vector<Spec> specs =
      chosen(request.variants, sweep.variants, registered_names(all_variants()));
  if (!request.block.empty())
    for (const std::string& value : expand_values("--block", request.block))
      ATTN_CHECK(value == "mixer" || value == "paper", "--block {} is not valid; mixer or paper",
                 value);
  for (Spec& spec : specs) ask_for_block(request.block, spec);
  resolved.variants = resolve_variants(specs);
  for (const AxisInfo& axis : all_axes()) {
    if (!axis.applies_to(sweep.measure)) continue;
    const auto asked = request.axes.find(axis.spec.name), offered = sweep.axes.find(axis.spec.name);
    const bool is_given = asked != request.axes.end() || offered != sweep.axes.end();
    if (!is_given && axis.is_optional(sweep.measure)) continue;
    const std::string text = asked != request.axes.end()   ? asked->second
                             : offered != sweep.axes.end() ? offered->second
                                                           : to_string(axis.spec.value);
    resolved.axes.push_back({axis.spec.name, axis_values(axis, text)});
  }
  settle_workloads(request, resolved.axes);
  settle_packings(request, resolved.axes);
  settle_causal(request, resolved.axes);
  const auto input = std::find_if(resolved.axes.begin(), resolved.axes.end(),
                                  [](const Setting& axis) { return axis.name == "input"; });
  if (input != resolved.axes.end() && captures_inputs(input->values)) {
    ATTN_CHECK(
        !request.tasks.empty() || !sweep.tasks.empty(),
        "input initial and trained come from a model on a task; choose one, such as -t mqar");
    resolved.tasks = resolve_tasks(chosen(request.tasks, sweep.tasks, {}));
    for (const Choice& choice :
         cross_product(overlay(training_texts(sweep.training), training_texts(request.training))))
      resolved.training.push_back(training_settings(choice));
    for (const Params& training : resolved.training)
      ATTN_CHECK(mimicry_steps(training) == 0,
                 "mimicry={} does not apply to input initial and trained: the model has exact "
                 "attention",
                 mimicry_steps(training));
  }
  if (sweep.measure != Measure::accuracy) return resolved;
  resolved.tasks = resolve_tasks(chosen(request.tasks, sweep.tasks, registered_names(all_tasks())));
  const std::vector<Setting> grid =
      training_texts(with_usual_rates(request.tune.empty() ? sweep.tune : request.tune));
  const std::vector<Setting> fixed = training_texts(request.training);
  for (const Setting& setting : grid) {
    const bool settled = std::any_of(fixed.begin(), fixed.end(),
                                     [&](const auto& other) { return other.name == setting.name; });
    ATTN_CHECK(!settled || request.tune.empty(), "{} stands in both --train and --tune; choose one",
               setting.name);
    ATTN_CHECK(different_values(setting) > 1,
               "tune {}={} leaves nothing to choose; give two different values", setting.name,
               join(setting.values));
    if (!settled) resolved.tuned.push_back(setting.name);
  }
  const std::vector<Setting> settings =
      overlay(overlay(training_texts(sweep.training), grid), fixed);
  for (const Choice& choice : cross_product(settings))
    resolved.training.push_back(training_settings(choice, resolved.tuned));
  check_mimicry(resolved);
  const std::string& tune_by = request.tune_by.empty() ? sweep.tune_by : request.tune_by;
  ATTN_CHECK(sweep.tune_by.empty() || !grid.empty(),
             "tune_by {} has nothing to choose among; add tuning", sweep.tune_by);
  resolved.is_halved = tune_by == kHalving && !resolved.tuned.empty();
  if (resolved.is_halved) check_halving(resolved, settings);
  resolved.test_with = request.test_with.empty() ? sweep.test_with : request.test_with;
  for (const auto& [info, params] : resolved.variants)
    resolved.tested.push_back(tested_params(*info, params, resolved.test_with, "test_with",
                                            "rounds=1;rounds=4", decoding_params()));
  resolved.test_on = request.test_on.empty() ? sweep.test_on : request.test_on;
  for (const auto& [info, params] : resolved.tasks)
    resolved.tested_on.push_back(
        tested_params(*info, params, resolved.test_on, "test_on", "length=[128,256]"));
  return resolved;
}

void check_tune_by(const SweepRequest& request, const std::vector<Resolved>& resolved) {
  const std::string& how = request.tune_by;
  ATTN_CHECK(how.empty() || how == "grid" || how == kHalving,
             "tune-by '{}' is not known; expected grid or halving", how);
  ATTN_CHECK(how.empty() || std::any_of(resolved.begin(), resolved.end(),
                                        [](const auto& sweep) { return !sweep.tuned.empty(); }),
             "tune-by {}: nothing is tuned; add --tune learning_rate", how);
}

// What `input` asks for, of the request or of the profile's fidelity.
std::vector<std::string> inputs_asked(const SweepRequest& request) {
  const auto asked = request.axes.find("input");
  if (asked != request.axes.end()) return axis_values(find_axis("input"), asked->second);
  std::vector<std::string> inputs;
  if (const Profile* const profile = asked_profile(request))
    for (const SubSweep& sweep : profile->sweeps)
      if (const auto axis = sweep.axes.find("input");
          sweep.measure == Measure::fidelity && axis != sweep.axes.end())
        for (const std::string& name : axis_values(find_axis("input"), axis->second))
          inputs.push_back(name);
  return inputs;
}

// Accuracy with tasks asked for: each task goes through the sub-sweeps of the profile that know it,
// so that it is trained by their recipe; a task that none knows is trained by the defaults.
std::vector<std::pair<SubSweep, SweepRequest>> by_task(const std::vector<SubSweep>& sweeps,
                                                       const SweepRequest& request) {
  std::vector<std::pair<SubSweep, SweepRequest>> pairs;
  for (const std::string& text : request.tasks) {
    const std::string name = parse_spec(text).name;
    SweepRequest one = request;
    one.tasks = {text};
    bool known = false;
    for (const SubSweep& sweep : sweeps) {
      if (sweep.measure != Measure::accuracy) continue;
      const bool knows =
          std::any_of(sweep.tasks.begin(), sweep.tasks.end(),
                      [&](const std::string& other) { return parse_spec(other).name == name; });
      if (knows) pairs.emplace_back(sweep, one);
      known = known || knows;
    }
    if (!known) pairs.emplace_back(SubSweep{.measure = Measure::accuracy}, one);
  }
  return pairs;
}

// The same of fidelity: the models are made by the recipe of the profile's accuracy.
std::vector<std::pair<SubSweep, SweepRequest>> fidelity_by_task(const std::vector<SubSweep>& sweeps,
                                                                const SweepRequest& request) {
  std::vector<SubSweep> own;
  for (const SubSweep& sweep : sweeps)
    if (sweep.measure == Measure::fidelity) own.push_back(sweep);
  if (own.empty()) own.push_back({.measure = Measure::fidelity});
  std::vector<std::pair<SubSweep, SweepRequest>> pairs;
  for (const auto& [trained, one] : by_task(sweeps, request))
    for (SubSweep sweep : own) {
      sweep.tasks = trained.tasks;
      sweep.training = trained.training;
      pairs.emplace_back(std::move(sweep), one);
    }
  return pairs;
}

std::vector<Measure> measures_asked(const SweepRequest& request) {
  const auto asked = request.axes.find("measure");
  std::vector<Measure> measures;
  if (asked == request.axes.end()) {
    const Profile* const profile = asked_profile(request);
    if (!profile) return {request.tasks.empty() ? Measure::speed : Measure::accuracy};
    for (const SubSweep& sweep : profile->sweeps)
      if (std::find(measures.begin(), measures.end(), sweep.measure) == measures.end())
        measures.push_back(sweep.measure);
    return measures;
  }
  for (const std::string& value : expand_values("axis measure", asked->second)) {
    const auto measure = value_named<Measure>(value);
    ATTN_CHECK(measure, "unknown measure '{}'{} (known: {})", value,
               nearest_note(value, measure_names()), join(measure_names(), ", "));
    measures.push_back(*measure);
  }
  return measures;
}

}  // namespace

std::vector<Resolved> resolve(const SweepRequest& request) {
  const Profile* const profile = asked_profile(request);
  const std::vector<SubSweep> offered = profile ? profile->sweeps : std::vector<SubSweep>{};
  const std::vector<Measure> measures = measures_asked(request);
  const std::vector<std::string> inputs = inputs_asked(request);
  refuse_idle_flags(request, measures, inputs);
  refuse_idle_shapes(request, measures);
  std::vector<Resolved> resolved;
  for (const Measure measure : measures) {
    if (measure == Measure::accuracy && !request.tasks.empty()) {
      for (const auto& [sweep, one] : by_task(offered, request))
        resolved.push_back(resolve_one(sweep, one));
      continue;
    }
    bool known = false;
    const auto add = [&](const SubSweep& sweep) {
      for (const auto& [own, asked] : at_shapes(sweep, request))
        resolved.push_back(resolve_one(own, asked));
    };
    if (measure == Measure::fidelity && !request.tasks.empty() && captures_inputs(inputs)) {
      for (const auto& one : fidelity_by_task(offered, request))
        resolved.push_back(resolve_one(one.first, one.second));
      continue;
    }
    for (const SubSweep& sweep : offered)
      if (sweep.measure == measure) add(sweep), known = true;
    if (!known) add({.measure = measure});
  }
  refuse_idle_layers(request, resolved);
  refuse_idle_cache(request, resolved);
  check_tune_by(request, resolved);
  return resolved;
}

SweepNames catalogued_names() {
  SweepNames names;
  names.variants = registered_names(all_variants());
  names.tasks = registered_names(all_tasks());
  names.variant = [](const std::string& text) { resolve_variants({parse_spec(text)}); };
  names.task = [](const std::string& text) { resolve_tasks({parse_spec(text)}); };
  names.training = [](const std::string& text) {
    for (const Choice& choice : cross_product(training_texts(text)))
      typed("training", training_params(), choice);
  };
  names.condition = [](const Condition& condition) {
    Filter({.zips = {}, .include = {condition}, .exclude = {}});
  };
  names.sweep = [](const SubSweep& sweep) { resolve_one(sweep, {}); };
  return names;
}

}  // namespace attn
