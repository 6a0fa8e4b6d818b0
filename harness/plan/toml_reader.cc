// Values of a TOML table as texts of the sweep grammar; see toml_reader.h.
#include "harness/plan/toml_reader.h"

#include <algorithm>

#include "core/base/nearest.h"
#include "core/base/one_line.h"
#include "core/base/params.h"
#include "harness/plan/axes.h"

namespace attn {

void TomlReader::refuse(int64_t line, std::string_view message) const {
  throw PlacedError(in_one_line(fmt::format("{}:{}: {}", file_, line, message)));
}

void TomlReader::require_keys(const TomlValue& table, std::string_view what,
                              const std::vector<std::string>& known) const {
  if (table.kind != TomlValue::Kind::table)
    refuse(table.line, fmt::format("{} is {}; expected a table", what, name_of(table.kind)));
  for (size_t i = 0; i < table.keys.size(); i++) {
    const std::string& key = table.keys[i];
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::vector<std::string> candidates = known;
    if (std::find(known.begin(), known.end(), "axes") != known.end())
      for (const AxisInfo& axis : all_axes()) candidates.push_back(axis.spec.name);
    const std::string found = nearest(key, candidates);
    const bool is_axis = std::find(known.begin(), known.end(), found) == known.end();
    refuse(table.items[i].line,
           found == key ? fmt::format("'{0}' is an axis; write axes.{0} = VALUES", key)
                        : fmt::format("unknown key '{}' in {}; nearest is '{}{}' (known: {})", key,
                                      what, is_axis ? "axes." : "", found, join(known, ", ")));
  }
}

std::vector<const TomlValue*> TomlReader::items_of(std::string_view what,
                                                   const TomlValue& value) const {
  std::vector<const TomlValue*> items;
  if (value.kind != TomlValue::Kind::list) return {&value};
  for (const TomlValue& item : value.items) items.push_back(&item);
  if (items.empty()) refuse(value.line, fmt::format("{} is an empty list", what));
  return items;
}

const std::string& TomlReader::text_of(std::string_view what, const TomlValue& value) const {
  if (value.kind != TomlValue::Kind::text)
    refuse(value.line,
           fmt::format("{} is {}{}; expected a text in quotes", what, name_of(value.kind),
                       value.is_scalar() ? ", " + value.text : std::string()));
  return value.text;
}

std::vector<Measure> TomlReader::measures_of(std::string_view what, const TomlValue& value) const {
  std::vector<Measure> measures;
  for (const TomlValue* const item : items_of(what, value)) {
    const std::string& name = text_of(what, *item);
    const auto measure = value_named<Measure>(name);
    if (!measure)
      refuse(item->line,
             fmt::format("unknown measure '{}'{} (known: {})", name,
                         nearest_note(name, measure_names()), join(measure_names(), ", ")));
    measures.push_back(*measure);
  }
  return measures;
}

std::string TomlReader::values_of(std::string_view what, const TomlValue& value) const {
  std::vector<std::string> texts;
  for (const TomlValue* const item : items_of(what, value)) {
    if (!item->is_scalar())
      refuse(item->line, fmt::format("{} is {}; expected a value, a text such as \"64:4096:*2\", "
                                     "or a list of them",
                                     what, name_of(item->kind)));
    if (item->text.empty()) refuse(item->line, fmt::format("{} is an empty text", what));
    texts.push_back(item->text);
  }
  return join(texts);
}

std::vector<Setting> TomlReader::settings_of(std::string_view what, const TomlValue& value) const {
  if (value.kind == TomlValue::Kind::text)
    return at(value, [&] { return parse_settings(value.text); });
  if (value.kind != TomlValue::Kind::table)
    refuse(value.line, fmt::format("{} is {}; expected a table, or a text such as "
                                   "\"steps=500,width=64\"",
                                   what, name_of(value.kind)));
  std::vector<Setting> settings;
  for (size_t i = 0; i < value.keys.size(); i++) {
    const std::string& name = value.keys[i];
    const std::string texts = values_of(fmt::format("{}.{}", what, name), value.items[i]);
    settings.push_back({name, at(value.items[i], [&] { return expand_values(name, texts); })});
  }
  return settings;
}

}  // namespace attn
