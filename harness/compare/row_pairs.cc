// Pairs of rows by the key of their cells; see row_pairs.h. O(rows · log rows).
#include "harness/compare/row_pairs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/add_once.h"
#include "core/base/one_line.h"
#include "harness/cell/codec.h"
#include "harness/compare/earlier.h"
#include "harness/compare/machines.h"
#include "harness/plan/labels.h"

namespace attn {
namespace {

using ByCell = std::map<std::string, const Row*>;

ByCell cells_of(const RowsFile& file, const std::vector<Measure>& measures) {
  ByCell cells;
  for (const Row& row : file.rows) {
    if (std::find(measures.begin(), measures.end(), row.key.measure) == measures.end()) continue;
    const bool is_new = cells.emplace(what_is_measured(row.key), &row).second;
    ATTN_CHECK(is_new, "'{}' holds the {} cell of {} twice (cell {}); take one of the lines out",
               file.path, name_of(row.key.measure), name_of_variant(row.key.variant), row.cell);
  }
  return cells;
}

std::string task_name(const Plugin& task) {
  try {
    return task_label(task);
  } catch (const Error&) {  // of another version
    return plugin_text(task);
  }
}

using Values = std::vector<std::pair<std::string, ParamValue>>;

Values values_of(const CellKey& key) {
  Values values = named_values(key.axes);
  if (key.training)
    for (const auto& setting : key.training->values()) values.push_back(setting);
  return values;
}

// For each measure and task, the axes and settings that rows differ in.
class Varying {
 public:
  explicit Varying(const ByCell& cells) {
    for (const auto& [what, row] : cells) {
      rows_[group(row->key)]++;
      for (const auto& [name, value] : values_of(row->key)) {
        Seen& seen = seen_[group(row->key)][name];
        seen.values.insert(value);
        seen.rows++;
      }
    }
  }
  std::string label(const CellKey& key) const {
    std::string text = name_of_variant(key.variant);
    if (key.task) text += " on " + task_name(*key.task);
    for (const auto& [name, value] : values_of(key)) {
      const Seen& seen = seen_.at(group(key)).at(name);
      const bool differs = seen.values.size() > 1 || seen.rows < rows_.at(group(key));
      if (is_told(key.axes, name)) continue;
      if (!differs && (name != always_named(key.axes) || key.task)) continue;
      const auto* const word = std::get_if<std::string>(&value);
      text += " " + (word ? *word : name + "=" + to_string(value));
    }
    return in_one_line(text);
  }

 private:
  using Group = std::pair<Measure, std::string>;
  static Group group(const CellKey& key) {
    return {key.measure, key.task ? plugin_text(*key.task) : ""};
  }
  struct Seen {
    std::set<ParamValue> values;
    size_t rows = 0;  // that have one
  };
  std::map<Group, size_t> rows_;
  std::map<Group, std::map<std::string, Seen>> seen_;
};

// Why no figure of this row may be compared; "" where it may.
std::string fault_of(const Row& row) {
  const CellResult& result = row.result;
  if (result.is_gated) return "a contract check is red: " + result.reason;
  if (!row.is_ok()) return fmt::format("{}: {}", name_of(result.status), result.reason);
  // Other disturbances widen the interval; times of a stopped process say nothing.
  if (row.key.measure == Measure::speed &&
      std::count(result.noisy.begin(), result.noisy.end(), Noise::stopped))
    return "its process was stopped";
  return {};
}

std::string fault_of(const Row& before, const Row& after) {
  const std::string old_fault = fault_of(before), new_fault = fault_of(after);
  if (!old_fault.empty() && old_fault == new_fault) return "both: " + old_fault;
  if (!new_fault.empty()) return "NEW: " + new_fault;
  return old_fault.empty() ? "" : "OLD: " + old_fault;
}

size_t position(const std::vector<std::string>& list, const std::string& text) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), text) - list.begin());
}

void sort_by_sweep(RowsFile& file) {
  std::vector<std::string> variants, tasks;
  for (const SweepConfig& sweep : file.run.config.sweeps) {
    variants.insert(variants.end(), sweep.variants.begin(), sweep.variants.end());
    tasks.insert(tasks.end(), sweep.tasks.begin(), sweep.tasks.end());
  }
  const auto place = [&](const Row& row) {
    const CellKey& key = row.key;
    const Axes& axes = key.axes;
    return std::tuple(key.measure, position(variants, plugin_text(key.variant)),
                      key.task ? position(tasks, plugin_text(*key.task)) : 0, axes.scope, axes.mode,
                      axes.causal, axes.length, axes.input, axes.input_scale, axes.seed);
  };
  std::stable_sort(file.rows.begin(), file.rows.end(),
                   [&](const Row& a, const Row& b) { return place(a) < place(b); });
}

// What a run line says beside its RunLine.
void add_head(const Json& line, RowsFile& run) {
  if (const std::string find = line["config"].value("find", ""); !find.empty()) run.find = find;
  if (const auto found = line.find("protocol"); found != line.end())
    add_once(run.protocols, Json(*found));
}

}  // namespace

std::vector<RowsFile> read_runs(const std::string& path) {
  std::vector<RowsFile> runs;
  std::map<std::string, size_t> places;  // of a run's id
  size_t number = 0;
  for (const Json& line : read_rows(path)) try {
      number++;
      const auto [place, is_new] =
          places.try_emplace(line["run"].get_ref<const std::string&>(), runs.size());
      if (is_new) runs.push_back({.path = path, .run = earlier_run_line(line)});
      RowsFile& run = runs[place->second];
      if (is_cell(line))
        run.rows.push_back(row_of(line));
      else
        add_head(line, run);
    } catch (const Error& error) {
      throw_error(fmt::format("{}:{}: not a line of this version of the program ({})", path, number,
                              one_line(error.what())));
    }
  for (RowsFile& run : runs) sort_by_sweep(run);
  return runs;
}

std::vector<RowsFile> read_runs(const std::vector<std::string>& paths) {
  std::vector<RowsFile> runs;
  for (const std::string& path : paths)
    for (RowsFile& run : read_runs(path)) runs.push_back(std::move(run));
  return runs;
}

RowsFile read_rows_file(const std::string& path) {
  std::vector<RowsFile> runs = read_runs(path);
  RowsFile file = std::move(runs.front());
  for (size_t i = 1; i < runs.size(); i++) {
    const std::string other = origin_difference(file.run, runs[i].run);
    ATTN_CHECK(other.empty(),
               "'{}' was merged from runs on several machines or builds ({}); compare the files it "
               "was made of",
               path, other);
    if (file.run.noise_floor.empty()) file.run.noise_floor = runs[i].run.noise_floor;
    for (const Json& protocol : runs[i].protocols) add_once(file.protocols, protocol);
    const auto& more = runs[i].run.config.sweeps;
    auto& sweeps = file.run.config.sweeps;
    sweeps.insert(sweeps.end(), more.begin(), more.end());
    std::move(runs[i].rows.begin(), runs[i].rows.end(), std::back_inserter(file.rows));
  }
  std::erase_if(file.rows, [](const Row& row) { return row.trial.has_value(); });
  sort_by_sweep(file);
  return file;
}

std::string what_is_measured(const CellKey& key) {
  CellKey bare = key;
  bare.source = {};
  return to_json(bare).dump();
}

std::string name_of_variant(const Plugin& variant) {
  try {
    return variant_label(variant);
  } catch (const Error&) {  // of another version
    return plugin_text(variant);
  }
}

Pairs pairs_of(const RowsFile& before, const RowsFile& after,
               const std::vector<Measure>& measures) {
  const ByCell old_cells = cells_of(before, measures), new_cells = cells_of(after, measures);
  const Varying varying(old_cells);
  Pairs pairs;
  for (const Row& row : before.rows) {
    const std::string what = what_is_measured(row.key);
    if (!old_cells.count(what)) continue;  // of another measure
    const auto found = new_cells.find(what);
    if (found == new_cells.end()) {
      pairs.before_only++;
      continue;
    }
    const std::string label = varying.label(row.key), fault = fault_of(row, *found->second);
    if (fault.empty())
      pairs.usable.push_back({&row, found->second, label});
    else
      pairs.left_out.push_back({row.key.measure, label, in_one_line(fault)});
  }
  for (const auto& [what, row] : new_cells) pairs.after_only += !old_cells.count(what);
  return pairs;
}

}  // namespace attn
