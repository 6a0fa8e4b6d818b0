// What asks for cells: SPEC and settings, config files, sweep files.
#include <algorithm>
#include <sstream>

#include "core/base/check.h"
#include "core/base/params.h"
#include "harness/cli/options.h"
#include "harness/plan/amounts.h"
#include "harness/plan/axes.h"
#include "harness/plan/grammar.h"
#include "harness/plan/sweep_file.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

std::string written(const std::vector<Setting>& settings) {
  std::vector<std::string> texts;
  for (const Setting& setting : settings)
    texts.push_back(setting.name + "=[" + join(setting.values) + "]");
  return join(texts);
}

void check_value(const std::string& text) {
  static const ParamSpec kinds[] = {{"whole", 3, "", -1e18, 1e18},
                                    {"number", 0.5, "", -1e300, 1e300},
                                    {"flag", false, ""},
                                    {"choice", {"tiled", "materialized"}, ""},
                                    {"text", std::vector<std::string>{""}, ""}};
  for (const ParamSpec& kind : kinds) {
    ParamValue value;
    if (accepts([&] { value = kind.parse("owner", text); }))
      require(kind.parse("owner", to_string(value)) == value, "a value changes: " + text);
  }
}

void check_settings(const std::vector<Setting>& settings) {
  size_t combinations = 1;
  for (const Setting& setting : settings) {
    for (size_t i = 0; i < std::min<size_t>(setting.values.size(), 4); i++)
      check_value(setting.values[i]);
    combinations = std::min<size_t>(combinations * setting.values.size(), 1'000'000);
  }
  if (combinations <= 100)
    require(cross_product(settings).size() == combinations, "combinations are lost");
  const std::string text = written(settings);
  require(written(parse_settings(text)) == text, "settings change when written: " + text);
  require(written(overlay(settings, settings)) == text, "settings change by themselves: " + text);
}

std::string written(const Spec& spec) {
  std::string text;
  for (const auto& [layer, times] : spec.layers)
    text += fmt::format("{}{}*{}", text.empty() ? "" : "+", times, written(layer));
  return spec.layers.empty() ? spec.name + "[" + written(spec.settings) + "]" : text;
}

void check_spec(const Spec& spec) {
  check_settings(spec.settings);
  for (const auto& [layer, times] : spec.layers) check_spec(layer);
  const std::string text = written(spec);
  require(written(parse_spec(text)) == text, "a spec changes when written: " + text);
}

const cli::Verb& verb() {
  static const cli::Verb run = {.name = "run",
                                .usage = "",
                                .summary = "",
                                .options = {{"variant", 'v', "SPEC", "", true},
                                            {"length", 0, "LIST", ""},
                                            {"config", 'c', "FILE", ""},
                                            {"resume", 0, "=BOOL", ""},
                                            {"timeout", 0, "TIME", ""},
                                            {"max-memory", 0, "SIZE", ""},
                                            {"jobs", 'j', "N", ""},
                                            {"color", 0, "WHEN", ""},
                                            {"quiet", 'q', "", ""}}};
  return run;
}

std::vector<std::string> lines_of(std::string_view bytes) {
  std::istringstream text{std::string(bytes)};
  std::vector<std::string> lines;
  // Boost.Program_options takes quadratic time for so many words.
  for (std::string line; lines.size() < 5'000 && std::getline(text, line);) lines.push_back(line);
  return lines;
}

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

// SPEC, settings and values: what is read and written in the long form reads the same, and a typed
// value that is printed is read as itself.
void spec(std::string_view bytes) {
  Spec spec;
  if (accepts([&] { spec = parse_spec(bytes); })) check_spec(spec);
  std::vector<Setting> settings;
  if (accepts([&] { settings = parse_settings(bytes); })) check_settings(settings);
  std::vector<std::string> values;
  if (!accepts([&] { values = expand_values("--length", bytes); })) return;
  require(expand_values("--length", join(values)) == values, "values change when written");
}

// A config file: what it sets is as the command line would set it, and its values are read as those
// of options. The same lines are also taken for the words of a command line.
void config(std::string_view bytes) {
  accepts([&] { cli::parse(verb(), lines_of(bytes)); });

  cli::Arguments arguments;
  std::istringstream file{std::string(bytes)};
  if (!accepts([&] { arguments.merge_config(file, "sweep.conf", verb()); })) return;
  require(arguments.words().empty() && !arguments.has("config"), "a file's words or config");
  accepts([&] { parse_seconds(arguments.get("timeout")); });
  accepts([&] { require(parse_bytes(arguments.get("max-memory")) >= 0, "negative memory"); });
  accepts([&] { require(arguments.integer("jobs", 2, 1, 1000) <= 1000, "too many jobs"); });
  accepts([&] { arguments.one_of("color", {"auto", "always", "never"}); });

  std::vector<std::string> line;
  for (const cli::Option& option : verb().options)
    for (const std::string& value : arguments.all(option.name)) {
      if (value.empty()) return;  // a line has no "--name="
      line.push_back("--" + option.name + (option.value.empty() ? "" : "=" + value));
    }
  const cli::Arguments again = cli::parse(verb(), line);
  for (const cli::Option& option : verb().options)
    require(again.all(option.name) == arguments.all(option.name), "a line means something else");
}

// A sweep file, with a small stand-in for the catalogues: what is read keeps its promises, and each
// sweep's axes have combinations. A part of the names is unknown, so that every way out is taken.
void sweep(std::string_view bytes) {
  static const SweepNames names = small_names();
  Profile profile;
  if (!accepts([&] { profile = parse_sweep_file("a.toml", bytes, names); })) return;
  require(!profile.sweeps.empty() && profile.text == bytes, "a file without a sweep");
  require(profile.info.version >= 1 && profile.info.timeout_s > 0, "version or timeout");
  for (const SubSweep& sweep : profile.sweeps) check_sweep(sweep);
}

}  // namespace attn::fuzz
