// Labels of variants, tasks and cells; see labels.h.
#include "harness/plan/labels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/grammar.h"
#include "harness/plan/packings.h"
#include "harness/plan/plan.h"
#include "harness/plan/workloads.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

using NamedValues = std::vector<std::pair<std::string, ParamValue>>;

// "pairs=4,vocab=64": the members of `params` that are not those of `defaults`.
std::string other_than(const Params& defaults, const Params& params) {
  std::vector<std::string> words;
  for (const auto& [name, value] : params.values()) {
    const auto it = defaults.values().find(name);
    if (it != defaults.values().end() && value == it->second) continue;
    words.push_back(name + "=" + to_string(value));
  }
  return join(words);
}

NamedValues listed(const Params& params) {
  return {params.values().begin(), params.values().end()};
}

// The values of each name in the cells of a sweep.
struct Varying {
  std::map<std::string, std::set<ParamValue>> values;
  std::map<std::string, size_t> counts;
  size_t cells = 0;

  void look_at(const NamedValues& seen) {
    cells++;
    for (const auto& [name, value] : seen) values[name].insert(value), counts[name]++;
  }
  // A cell that lacks the name differs from those that have it.
  bool varies(const std::string& name) const {
    return values.at(name).size() > 1 || counts.at(name) < cells;
  }
};

// The values whose names have several in the sweep, and that of `always`.
void add_varying(const NamedValues& values, const Varying& seen, const std::string& always,
                 std::string& text) {
  for (const auto& [name, value] : values) {
    if (!seen.varies(name) && name != always) continue;
    const auto* const word = std::get_if<std::string>(&value);
    // kv_dtype has the words of dtype, packed may have those of workload.
    const bool is_plain = word && name != "kv_dtype" && name != "packed";
    text += " " + (is_plain ? *word : name + "=" + to_string(value));
  }
}

// Without what the task decides.
Axes axes_beside_task(const CellKey& key) {
  Axes axes = key.axes;
  if (key.task) {
    axes.length.reset();
    axes.causal.reset();
  }
  return axes;
}

}  // namespace

std::string always_named(const Axes& axes) {
  return axes.workload ? "workload" : axes.packed ? "packed" : "length";
}

bool is_told(const Axes& axes, const std::string& name) {
  if (is_decided_by_list(axes, name)) return true;
  return axes.workload && std::find(kDecidedByWorkload.begin(), kDecidedByWorkload.end(), name) !=
                              kDecidedByWorkload.end();
}

std::string marked_name(const std::string& name) {
  return name.starts_with(kPythonNames) ? name + std::string(kPythonSign) : name;
}

std::string variant_label(const Plugin& variant) {
  const VariantInfo* const info = variant_named(variant.name);
  const std::string name = marked_name(variant.name);
  // Of a plug-in that is not loaded the defaults are unknown.
  if (!info) return name + plugin_text(variant).substr(variant.name.size());
  const Params defaults(variant.name, info->params);
  const std::string text = other_than(defaults, variant.params);
  return text.empty() ? name : fmt::format("{}[{}]", name, text);
}

std::string task_label(const Plugin& task) {
  const TaskInfo* const known = task_named(task.name);
  if (!known) return plugin_text(task);
  const TaskInfo& info = *known;
  const std::string text = other_than(info.resolve(), task.params);
  if (text.empty()) return task.name;
  for (const Preset& preset : info.presets)
    if (info.resolve({{"preset", preset.name}}).for_key(info.params) == task.params)
      return fmt::format("{}[preset={}]", task.name, preset.name);
  return fmt::format("{}[{}]", task.name, text);
}

std::vector<std::string> cell_labels(const std::vector<Cell>& cells) {
  std::map<Measure, Varying> axes;
  // Recipes differ from task to task: only what differs within a task tells cells apart.
  std::map<std::string, Varying> training;
  for (const Cell& cell : cells) {
    axes[cell.key.measure].look_at(named_values(cell.key.axes));
    if (cell.key.task && cell.key.training)
      training[plugin_text(*cell.key.task)].look_at(listed(*cell.key.training));
  }
  std::vector<std::string> labels;
  for (const Cell& cell : cells) {
    const CellKey& key = cell.key;
    std::string text = fmt::format("{} {}", name_of(key.measure), variant_label(key.variant));
    if (key.task) text += " on " + task_label(*key.task);
    NamedValues values = named_values(axes_beside_task(key));
    std::erase_if(values, [&](const auto& axis) { return is_told(key.axes, axis.first); });
    add_varying(values, axes[key.measure], key.task ? "" : always_named(key.axes), text);
    if (key.task && key.training)
      add_varying(listed(*key.training), training[plugin_text(*key.task)], "", text);
    labels.push_back(std::move(text));
  }
  return labels;
}

}  // namespace attn
