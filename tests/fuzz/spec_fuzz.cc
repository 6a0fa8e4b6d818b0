// SPEC, settings and values: what is read and written in the long form reads the same, and a typed
// value that is printed is read as itself.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/params.h"
#include "harness/plan/grammar.h"
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

}  // namespace

void spec(std::string_view bytes) {
  Spec spec;
  if (accepts([&] { spec = parse_spec(bytes); })) check_spec(spec);
  std::vector<Setting> settings;
  if (accepts([&] { settings = parse_settings(bytes); })) check_settings(settings);
  std::vector<std::string> values;
  if (!accepts([&] { values = expand_values("--length", bytes); })) return;
  require(expand_values("--length", join(values)) == values, "values change when written");
}

}  // namespace attn::fuzz
