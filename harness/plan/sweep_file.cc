// From the tree of a TOML text to sub-sweeps, each value checked where it stands; see sweep_file.h.
#include "harness/plan/sweep_file.h"

#include <algorithm>
#include <filesystem>

#include "core/base/check.h"
#include "harness/plan/amounts.h"
#include "harness/plan/axes.h"
#include "harness/plan/halving.h"
#include "harness/plan/profiles.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/rules_reader.h"
#include "harness/plan/setting_names.h"
#include "harness/plan/toml_reader.h"

namespace attn {
namespace {

const char* const kEverything = "*";

std::string settings_text(const std::vector<Setting>& settings) {
  std::vector<std::string> texts;
  for (const Setting& setting : settings)
    texts.push_back(setting.name + "=[" + join(setting.values) + "]");
  return join(texts);
}

class SweepFile {
 public:
  SweepFile(const std::string& file, const SweepNames& names)
      : reader_(file), names_(names), file_(file) {}

  Profile read(std::string_view text) {
    const TomlValue top = parse_toml(file_, text);
    reader_.require_keys(top, "a sweep file",
                         {"name", "summary", "version", "timeout", "extends", "replace", "defaults",
                          "exclude", "sweep"});
    Profile profile;
    profile.text = text;
    if (const TomlValue* extended = top.find("extends"))
      inherit(top, *extended, profile);
    else if (const TomlValue* replace = top.find("replace"))
      reader_.refuse(replace->line,
                     "replace needs extends = \"PROFILE\", whose sweeps it leaves out");
    read_info(top, profile.info);
    for (const Measure measure : kMeasures) defaults_[measure].measure = measure;
    if (const TomlValue* defaults = top.find("defaults")) read_defaults(*defaults);
    if (const TomlValue* sweeps = top.find("sweep")) {
      if (sweeps->kind != TomlValue::Kind::list)
        reader_.refuse(sweeps->line, "sweep is one table; write [[sweep]], with two brackets");
      for (const TomlValue& sweep : sweeps->items) read_sweep(sweep, profile.sweeps);
    }
    if (profile.sweeps.empty())
      reader_.refuse(1, "there is no sweep; write a [[sweep]] block, or extends = \"PROFILE\"");
    const std::vector<Condition> excluded =
        read_conditions(reader_, "exclude", top, names_.condition);
    for (SubSweep& sweep : profile.sweeps)
      sweep.rules.exclude.insert(sweep.rules.exclude.end(), excluded.begin(), excluded.end());
    return profile;
  }

 private:
  void read_info(const TomlValue& top, ProfileInfo& info) {
    info.name = std::filesystem::path(file_).stem().string();
    if (const TomlValue* name = top.find("name")) info.name = reader_.text_of("name", *name);
    info.summary.clear();
    if (const TomlValue* summary = top.find("summary"))
      info.summary = reader_.text_of("summary", *summary);
    info.version = 1;
    if (const TomlValue* version = top.find("version"))
      reader_.at(*version, [&] {
        static const ParamSpec kVersion("version", 1, "");
        ATTN_CHECK(version->kind == TomlValue::Kind::whole, "version is {}; expected a number",
                   name_of(version->kind));
        info.version =
            static_cast<int>(std::get<int64_t>(kVersion.parse("sweep file", version->text)));
      });
    if (const TomlValue* timeout = top.find("timeout"))
      info.timeout_s = reader_.at(
          *timeout, [&] { return parse_seconds(reader_.values_of("timeout", *timeout)); });
  }

  void inherit(const TomlValue& top, const TomlValue& extended, Profile& profile) {
    const Profile& from = reader_.at(extended, [&]() -> const Profile& {
      return names_.profile(reader_.text_of("extends", extended));
    });
    profile.info = from.info;
    std::vector<Measure> left_out;
    if (const TomlValue* replace = top.find("replace"))
      left_out = reader_.measures_of("replace", *replace);
    for (const SubSweep& sweep : from.sweeps)
      if (std::find(left_out.begin(), left_out.end(), sweep.measure) == left_out.end())
        profile.sweeps.push_back(sweep);
  }

  // Specs of variants or of tasks. "*" stands for each one that the list does not name itself.
  std::vector<std::string> read_specs(std::string_view what, const TomlValue& value,
                                      const std::vector<std::string>& known,
                                      const std::function<void(const std::string&)>& check) {
    std::vector<std::string> specs;
    bool is_open = false;
    for (const TomlValue* const item : reader_.items_of(what, value)) {
      const std::string& text = reader_.text_of(what, *item);
      if (text == kEverything) {
        is_open = true;
        continue;
      }
      reader_.at(*item, [&] { check(text); });
      specs.push_back(text);
    }
    if (!is_open) return specs;
    std::vector<std::string> all;
    for (const std::string& name : known) {
      const size_t before = all.size();
      for (const std::string& spec : specs)
        if (parse_spec(spec).name == name) all.push_back(spec);
      if (all.size() == before) all.push_back(name);
    }
    for (const std::string& spec : specs)
      if (spec.starts_with(kPythonPrefix) || !parse_spec(spec).layers.empty())
        all.push_back(spec);  // beside everything built in
    return all;
  }

  void read_axes(const TomlValue& value, const std::vector<Measure>& measures,
                 std::vector<SubSweep>& sweeps) {
    std::vector<std::string> names, words;
    for (const AxisInfo& axis : all_axes()) names.push_back(axis.spec.name);
    for (const Measure measure : measures) words.emplace_back(name_of(measure));
    reader_.require_keys(value, "axes", names);
    for (size_t i = 0; i < value.keys.size(); i++) {
      const AxisInfo& axis = find_axis(value.keys[i]);
      if (std::none_of(measures.begin(), measures.end(),
                       [&](Measure measure) { return axis.applies_to(measure); }))
        reader_.refuse(
            value.items[i].line,
            fmt::format("axis {} does not apply to measure {}{}", axis.spec.name, join(words),
                        axis.spec.name == "length"
                            ? "; a task's length is a parameter of the task, such as "
                              "mqar[length=128]"
                            : ""));
      const std::string text = reader_.values_of("axis " + axis.spec.name, value.items[i]);
      reader_.at(value.items[i], [&] { axis_values(axis, text); });
      for (SubSweep& sweep : sweeps)
        if (axis.applies_to(sweep.measure)) sweep.axes[axis.spec.name] = text;
    }
  }

  std::string read_training(std::string_view what, const TomlValue& value,
                            const std::string& base) {
    const std::vector<Setting> settings =
        reader_.at(value, [&] { return with_full_names(reader_.settings_of(what, value)); });
    reader_.at(value, [&] { names_.training(settings_text(settings)); });
    return settings_text(overlay(training_texts(base), settings));
  }

  std::string read_tuning(const TomlValue& value) {
    TomlValue choices = value;
    if (value.kind == TomlValue::Kind::text) choices.text = with_usual_rates(value.text);
    return read_training("tuning", choices, "");
  }

  // Texts of parameters, alone or in a list; resolve() reads them, for they are of a variant or a
  // task.
  std::string read_tested(std::string_view key, const TomlValue& value) {
    std::vector<std::string> texts;
    for (const TomlValue* const item : reader_.items_of(key, value))
      texts.push_back(reader_.text_of(key, *item));
    return join(texts, ";");
  }

  std::string read_tune_by(const TomlValue& value) {
    const std::string how = reader_.text_of("tune_by", value);
    if (how != "grid" && how != kHalving)
      reader_.refuse(value.line, fmt::format("tune_by is grid or halving, not '{}'", how));
    return how;
  }

  // What a block and the defaults of a measure have in common.
  void read_parts(const TomlValue& table, const std::vector<Measure>& measures,
                  std::vector<SubSweep>& sweeps) {
    if (const TomlValue* variants = table.find("variants")) {
      const auto specs = read_specs("variants", *variants, names_.variants, names_.variant);
      for (SubSweep& sweep : sweeps) sweep.variants = specs;
    }
    if (const TomlValue* axes = table.find("axes")) read_axes(*axes, measures, sweeps);
    for (const char* key : {"tasks", "training", "tuning", "tune_by", "test_with", "test_on"}) {
      const TomlValue* const value = table.find(key);
      if (!value) continue;
      // Fidelity has models too, where its inputs are captured from them; they are not tuned.
      const std::string_view name = key;
      const bool of_models = name == "tasks" || name == "training";
      const auto takes = [&](Measure measure) {
        return measure == Measure::accuracy || (measure == Measure::fidelity && of_models);
      };
      if (std::none_of(measures.begin(), measures.end(), takes))
        reader_.refuse(value->line, fmt::format("{} does not apply to measure {}; add accuracy",
                                                key, name_of(measures[0])));
      for (SubSweep& sweep : sweeps) {
        if (!takes(sweep.measure)) continue;
        if (name == "tasks")
          sweep.tasks = read_specs(key, *value, names_.tasks, names_.task);
        else if (name == "training")
          sweep.training = read_training(key, *value, sweep.training);
        else if (name == "test_with")
          sweep.test_with = read_tested(key, *value);
        else if (name == "test_on")
          sweep.test_on = read_tested(key, *value);
        else if (name == "tune_by")
          sweep.tune_by = read_tune_by(*value);
        else
          sweep.tune = read_tuning(*value);
      }
    }
  }

  void read_defaults(const TomlValue& defaults) {
    reader_.require_keys(defaults, "defaults", measure_names());
    for (size_t i = 0; i < defaults.keys.size(); i++) {
      const Measure measure = *value_named<Measure>(defaults.keys[i]);
      reader_.require_keys(
          defaults.items[i], "defaults." + defaults.keys[i],
          {"variants", "tasks", "axes", "training", "tuning", "tune_by", "test_with", "test_on"});
      std::vector<SubSweep> one = {defaults_[measure]};
      read_parts(defaults.items[i], {measure}, one);
      defaults_[measure] = one[0];
    }
  }

  void read_sweep(const TomlValue& block, std::vector<SubSweep>& all) {
    reader_.require_keys(block, "[[sweep]]",
                         {"measure", "variants", "tasks", "axes", "training", "tuning", "tune_by",
                          "test_with", "test_on", "zip", "include", "exclude"});
    std::vector<Measure> measures = {block.find("tasks") ? Measure::accuracy : Measure::speed};
    if (const TomlValue* measure = block.find("measure"))
      measures = reader_.measures_of("measure", *measure);
    std::vector<SubSweep> sweeps;
    for (const Measure measure : measures) sweeps.push_back(defaults_[measure]);
    read_parts(block, measures, sweeps);
    if (const TomlValue* tasks = block.find("tasks");
        tasks && measures == std::vector{Measure::fidelity} && !captures(sweeps[0]))
      reader_.refuse(tasks->line, "tasks of fidelity are read for axes.input initial and trained");
    Rules rules{.zips = {},
                .include = read_conditions(reader_, "include", block, names_.condition),
                .exclude = read_conditions(reader_, "exclude", block, names_.condition)};
    if (const TomlValue* zip = block.find("zip")) rules.zips = read_zips(reader_, *zip, sweeps);
    for (SubSweep& sweep : sweeps) {
      sweep.rules = rules;
      reader_.at(block, [&] { names_.sweep(sweep); });
      all.push_back(std::move(sweep));
    }
  }

  static bool captures(const SubSweep& sweep) {
    const auto input = sweep.axes.find("input");
    return input != sweep.axes.end() &&
           captures_inputs(axis_values(find_axis("input"), input->second));
  }

  TomlReader reader_;
  const SweepNames& names_;
  const std::string& file_;
  std::map<Measure, SubSweep> defaults_;
};

}  // namespace

Profile parse_sweep_file(const std::string& file, std::string_view text, const SweepNames& names) {
  return SweepFile(file, names).read(text);
}

}  // namespace attn
