// Labels of variants, tasks and cells; see labels.h.
#include "harness/sweep/labels.h"

#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/sweep/key.h"
#include "harness/sweep/sweep.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// "pairs=4,vocab=64": the members of `params` that are not those of `defaults`.
std::string other_than(const Params& defaults, const Json& params) {
  std::vector<std::string> words;
  for (const auto& [name, value] : params.items()) {
    const auto it = defaults.values().find(name);
    if (it != defaults.values().end() && value == to_json(it->second)) continue;
    words.push_back(name + "=" + text_of(value));
  }
  return join(words);
}

// The names in which objects differ, of those that have each.
using Varying = std::map<std::string, std::set<std::string>>;  // name -> its values

void look_at(const Json& object, Varying& seen) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) seen[name].insert(text_of(value));
}

void add_varying(const Json& object, const Varying& seen, bool with_length, std::string& text) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    if (seen.at(name).size() < 2 && !(with_length && name == "length")) continue;
    text += " " + (value.is_string() ? value.get<std::string>() : name + "=" + value.dump());
  }
}

}  // namespace

std::string variant_label(const Json& variant) {
  const std::string name = variant.at("name");
  const Params defaults(name, find_variant(name).params);
  const std::string text = other_than(defaults, variant.at("params"));
  return text.empty() ? name : fmt::format("{}[{}]", name, text);
}

std::string task_label(const Json& task) {
  const std::string name = task.at("name");
  const TaskInfo& info = find_task(name);
  const std::string text = other_than(info.resolve(), task.at("params"));
  if (text.empty()) return name;
  for (const Preset& preset : info.presets)
    if (other_than(info.resolve({{"preset", preset.name}}), task.at("params")).empty())
      return fmt::format("{}[preset={}]", name, preset.name);
  return fmt::format("{}[{}]", name, text);
}

std::vector<std::string> cell_labels(const std::vector<Cell>& cells) {
  struct Seen {
    Varying axes, training;
  };
  std::map<std::string, Seen> by_measure;
  for (const Cell& cell : cells) {
    Seen& seen = by_measure[cell.key["measure"]];
    look_at(cell.key["axes"], seen.axes);
    // Recipes differ from task to task: only what differs within a task tells cells apart.
    if (!cell.key["task"].is_null())
      look_at(cell.key["training"], by_measure[cell.key["task"].dump()].training);
  }
  std::vector<std::string> labels;
  for (const Cell& cell : cells) {
    const std::string measure = cell.key["measure"];
    const Json& task = cell.key["task"];
    std::string text = measure + " " + variant_label(cell.key["variant"]);
    if (!task.is_null()) text += " on " + task_label(task);
    Json axes = cell.key["axes"];
    if (!task.is_null())
      for (const char* of_the_task : {"length", "causal"}) axes.erase(of_the_task);
    add_varying(axes, by_measure[measure].axes, task.is_null(), text);
    if (!task.is_null())
      add_varying(cell.key["training"], by_measure[task.dump()].training, false, text);
    labels.push_back(std::move(text));
  }
  return labels;
}

}  // namespace attn
