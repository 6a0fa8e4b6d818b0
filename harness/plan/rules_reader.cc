// Rules of a sweep file, each value checked where it stands; see rules_reader.h.
#include "harness/plan/rules_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/axes.h"
#include "harness/plan/setting_names.h"

namespace attn {
namespace {

Condition read_condition(const TomlReader& reader, std::string_view what, const TomlValue& table) {
  std::vector<std::string> known = {"measure", "variant", "task", "training"};
  for (const AxisInfo& axis : all_axes()) known.push_back(axis.spec.name);
  reader.require_keys(table, what, known);
  if (table.keys.empty())
    reader.refuse(table.line, fmt::format("a condition of {} is empty and fits every cell", what));
  Condition condition;
  for (size_t i = 0; i < table.keys.size(); i++) {
    const std::string& key = table.keys[i];
    const TomlValue& value = table.items[i];
    if (key == "measure") {
      condition.measures = reader.measures_of(key, value);
    } else if (key == "training") {
      condition.training =
          reader.at(value, [&] { return with_full_names(reader.settings_of(key, value)); });
    } else if (key == "variant" || key == "task") {
      for (const TomlValue* const item : reader.items_of(key, value))
        (key == "task" ? condition.tasks : condition.variants).push_back(reader.at(*item, [&] {
          return parse_spec(reader.text_of(key, *item));
        }));
    } else {
      std::vector<AxisComparison> comparisons;
      for (const TomlValue* const item : reader.items_of("axis " + key, value))
        reader.at(*item, [&] {
          for (AxisComparison& one : comparisons_of(find_axis(key), reader.values_of(key, *item)))
            comparisons.push_back(std::move(one));
        });
      condition.axes.emplace_back(key, std::move(comparisons));
    }
  }
  return condition;
}

}  // namespace

std::vector<std::vector<std::string>> read_zips(const TomlReader& reader, const TomlValue& value,
                                                const std::vector<SubSweep>& sweeps) {
  const auto items = reader.items_of("zip", value);
  const bool is_list_of_lists = items[0]->kind == TomlValue::Kind::list;
  std::vector<std::vector<std::string>> zips;
  std::set<std::string> seen;
  for (const TomlValue* const zip :
       is_list_of_lists ? items : std::vector<const TomlValue*>{&value}) {
    std::vector<std::string>& names = zips.emplace_back();
    for (const TomlValue* const item : reader.items_of("zip", *zip)) {
      const std::string& name = reader.text_of("zip", *item);
      reader.at(*item, [&] {
        find_axis(name);
        ATTN_CHECK(std::any_of(sweeps.begin(), sweeps.end(),
                               [&](const SubSweep& one) { return one.axes.count(name) != 0; }),
                   "zip: axis {0} has no values here; write axes.{0} = VALUES", name);
        ATTN_CHECK(seen.insert(name).second, "zip: axis {} stands there twice", name);
      });
      names.push_back(name);
    }
    if (names.size() < 2)
      reader.refuse(zip->line, fmt::format("zip: {} alone goes in step with nothing; name two "
                                           "axes, as in zip = [\"heads\", \"head_dim\"]",
                                           names[0]));
  }
  reader.at(value, [&] {
    for (const SubSweep& sweep : sweeps) {
      std::vector<Setting> axes;
      for (const auto& [name, text] : sweep.axes)
        axes.push_back({name, axis_values(find_axis(name), text)});
      combinations(axes, zips);
    }
  });
  return zips;
}

std::vector<Condition> read_conditions(const TomlReader& reader, const char* key,
                                       const TomlValue& table,
                                       const std::function<void(const Condition&)>& check) {
  std::vector<Condition> conditions;
  const TomlValue* const value = table.find(key);
  if (!value) return conditions;
  for (const TomlValue* const item : reader.items_of(key, *value)) {
    conditions.push_back(read_condition(reader, key, *item));
    reader.at(*item, [&] { check(conditions.back()); });
  }
  return conditions;
}

}  // namespace attn
