// Comparisons with the values of an axis, and axes that go in step; see rules.h.
#include "harness/plan/rules.h"

#include <algorithm>

#include "core/base/check.h"

namespace attn {
namespace {

double number_in(const ParamValue& value) {
  if (const auto* const whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

bool is_number(const ParamValue& value) {
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
}

bool holds_of(const AxisComparison& comparison, const ParamValue& value) {
  if (comparison.how == "=") return value == comparison.value;
  if (comparison.how == "!=") return value != comparison.value;
  const double left = number_in(value), right = number_in(comparison.value);
  if (comparison.how == "<") return left < right;
  if (comparison.how == "<=") return left <= right;
  if (comparison.how == ">") return left > right;
  return left >= right;
}

const Setting* setting_named(const std::vector<Setting>& settings, const std::string& name) {
  for (const Setting& setting : settings)
    if (setting.name == name) return &setting;
  return nullptr;
}

// One choice for each place in the lists of these settings.
std::vector<Choice> in_step(const std::vector<const Setting*>& settings) {
  const Setting& first = *settings[0];
  for (const Setting* const setting : settings)
    ATTN_CHECK(setting->values.size() == first.values.size(),
               "zip: {} has {} values and {} has {}; axes of a zip have equally many", first.name,
               first.values.size(), setting->name, setting->values.size());
  std::vector<Choice> choices(first.values.size());
  for (const Setting* const setting : settings)
    for (size_t i = 0; i < choices.size(); i++)
      choices[i].emplace_back(setting->name, setting->values[i]);
  return choices;
}

}  // namespace

std::vector<AxisComparison> comparisons_of(const AxisInfo& axis, std::string_view text) {
  for (const char* how : {"!=", "<=", ">=", "<", ">"}) {
    if (!text.starts_with(how)) continue;
    text.remove_prefix(std::string_view(how).size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const ParamValue value = axis.spec.parse("axis", text);
    ATTN_CHECK(is_number(value) || how == std::string_view("!="),
               "axis {}: '{}' compares what is no number", axis.spec.name, how);
    return {{how, value}};
  }
  std::vector<AxisComparison> comparisons;
  for (const std::string& value : axis_values(axis, text))
    comparisons.push_back({"=", axis.spec.parse("axis", value)});
  return comparisons;
}

bool fits(const std::vector<AxisComparison>& comparisons, const ParamValue& value) {
  return std::any_of(comparisons.begin(), comparisons.end(),
                     [&](const AxisComparison& one) { return holds_of(one, value); });
}

std::vector<Choice> combinations(const std::vector<Setting>& axes,
                                 const std::vector<std::vector<std::string>>& zips) {
  std::vector<Choice> choices = {{}};
  std::vector<std::string> done;
  for (const Setting& axis : axes) {
    if (std::find(done.begin(), done.end(), axis.name) != done.end()) continue;
    std::vector<const Setting*> together;
    for (const std::vector<std::string>& zip : zips)
      if (std::find(zip.begin(), zip.end(), axis.name) != zip.end())
        for (const std::string& name : zip)
          if (const Setting* const other = setting_named(axes, name)) together.push_back(other);
    if (together.empty()) together.push_back(&axis);
    const std::vector<Choice> parts = in_step(together);
    for (const Setting* const setting : together) done.push_back(setting->name);
    ATTN_CHECK(choices.size() * parts.size() <= kMostCells,
               "more than {} combinations with the {} values of {}; ask for fewer", kMostCells,
               parts.size(), axis.name);
    std::vector<Choice> longer;
    longer.reserve(choices.size() * parts.size());
    for (const Choice& choice : choices)
      for (const Choice& part : parts) {
        longer.push_back(choice);
        longer.back().insert(longer.back().end(), part.begin(), part.end());
      }
    choices = std::move(longer);
  }
  return choices;
}

}  // namespace attn
