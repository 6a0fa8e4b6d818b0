// From rows to tables: what is compared stands in one table, what differs in contract or shape in
// another. See table.h.
#include "harness/tables/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/faster_from.h"
#include "harness/tables/floors.h"
#include "harness/tables/grid.h"
#include "harness/tables/packed_table.h"
#include "harness/tables/scope_notes.h"
#include "harness/tables/serving_table.h"
#include "harness/tables/verified_notes.h"
#include "variants/catalog.h"

namespace attn {
namespace {

std::string noise_text(Noise noise) {
  switch (noise) {
    case Noise::stopped:
      return "the process was stopped";
    case Noise::witness:
      return "the witness, work that never changes, took over a sixth longer than at its best";
    case Noise::steal:
      return "the hypervisor took time";
    case Noise::switches:
      return "another process took the core";
  }
  return "";
}

// "" where the axis does not apply.
std::string axis_text(const Row& row, const std::string& axis) {
  for (const auto& [name, value] : named_values(row.key.axes))
    if (name == axis) return to_string(value);
  return "";
}

// What the intervals of these cells leave out.
std::vector<std::string> interval_notes(const Grid& grid) {
  size_t alone = 0, timed = 0;
  for (const auto& [place, row] : grid.cells) {
    if (!row->is_ok()) continue;
    timed++;
    alone += row->result.visits.size() <= 1;
  }
  if (alone == 0) return {};
  return {
      fmt::format("{}: the repetitions are taken as of one process, and what differs from "
                  "process to process is not in the interval",
                  alone == timed ? "intervals" : fmt::format("{} of {} intervals", alone, timed))};
}

// Which times are marked, and by which rules.
std::vector<std::string> noise_notes(const Grid& grid) {
  std::map<std::string, int> counts;
  for (const auto& [place, row] : grid.cells)
    if (row->is_ok())
      for (const Noise noise : row->result.noisy) counts[noise_text(noise)]++;
  if (counts.empty()) return {};
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", what, count);
  return {"*: disturbed: " + text};
}

// Whose FLOPs, and so shares of the peak, are counted.
std::vector<std::string> cost_notes(const Grid& grid) {
  std::set<std::string> counted;
  for (const auto& [place, row] : grid.cells)
    if (row->is_ok() && row->ledger && row->ledger->cost == CostSource::measured)
      counted.insert(place.first);
  if (counted.empty()) return {};
  return {fmt::format("FLOPs of {} are measured: no cost is declared, and no roofline can be had",
                      joined(counted))};
}

// What bounds the time: of a token the state that it reads, of a pass the FMA peak.
std::string show_load(const SpeedMetrics& metrics) {
  if (metrics.state_bytes) return human_bytes(static_cast<double>(*metrics.state_bytes));
  return metrics.peak_fraction ? fmt::format("{:.2f}", *metrics.peak_fraction) : "";
}

// "-50 +0 of -64 +0": what is felt when an input is replaced, of what the pattern connects.
std::string show_reach(const Row& row) {
  const auto show = [](const ReachDistances& reach) {
    return fmt::format("-{} +{}", reach.past, reach.future);
  };
  const std::string felt = show(row.reach().perturbation), connected = show(row.reach().connected);
  return felt == connected ? felt : fmt::format("{} of {}", felt, connected);
}

// The axes that tell rows of one table apart: of a sweep of several values, types and shared heads;
// where one variant was measured alone, whatever varies but the mode, whose figures are others.
std::set<std::string> axes_in_rows(const std::vector<const Row*>& rows) {
  std::set<std::string> labels, axes = {"kv_heads", "dtype", "kv_dtype"};
  for (const Row* row : rows) labels.insert(label_of(*row));
  if (labels.size() == 1)
    axes.insert({"batch", "heads", "head_dim", "threads", "causal", "scope", "layers"});
  std::erase_if(axes, [&](const std::string& axis) {
    std::map<std::string, std::set<std::string>> values;  // by mode: decoding is causal
    for (const Row* row : rows) values[axis_text(*row, "mode")].insert(axis_text(*row, axis));
    return std::all_of(values.begin(), values.end(),
                       [](const auto& of_mode) { return of_mode.second.size() <= 1; });
  });
  return axes;
}

// "full, kv_heads 2"; an axis that is not set is at its default and not named.
std::string label_with(const Row& row, const std::set<std::string>& axes) {
  std::string label = label_of(row);
  for (const auto& [axis, value] : named_values(row.key.axes))
    if (axes.count(axis)) label += ", " + axis + " " + to_string(value);
  return label;
}

// Exact attention of the same axes: "full, kv_heads 2" beside "linear, kv_heads 2".
std::string baseline_of(const Grid& grid, const std::string& label) {
  for (const auto& [place, row] : grid.cells)
    if (const std::string own = label_of(*row); place.first == label && label.rfind(own, 0) == 0)
      return exact_reference().name + label.substr(own.size());
  return exact_reference().name;
}

Table speed_table(const std::string& group, Grid grid, const NoiseFloor& floors) {
  grid.sort_columns_as_numbers();
  const Axes& axes = grid.cells.begin()->second->key.axes;
  const bool decode = axes.mode == Mode::decode;
  Table table{.title = fmt::format("time {}in ms (median ± half its 95 % interval) by length; {}",
                                   decode ? "of one token " : "", group),
              .columns = {"variant"},
              .rows = {},
              .notes = interval_notes(grid)};
  const Grid whole = grid;
  keep_few_columns(grid, table.notes);
  for (const std::string& column : grid.columns) table.columns.push_back(column);
  fill(table, grid, show_time);
  table.columns.push_back((decode ? "state at " : "of FMA peak at ") + grid.columns.back());
  for (std::string& note : noise_notes(grid)) table.notes.push_back(std::move(note));
  for (std::string& note : cost_notes(grid)) table.notes.push_back(std::move(note));
  const auto is_compared = [&](const std::string& label) {
    const std::string base = baseline_of(whole, label);
    return base != label &&
           std::find(grid.labels.begin(), grid.labels.end(), base) != grid.labels.end();
  };
  const bool has_full = std::any_of(grid.labels.begin(), grid.labels.end(), is_compared);
  if (has_full) table.columns.push_back("faster than full from");
  for (size_t i = 0; i < grid.labels.size(); i++) {
    const Row* last = grid.find(grid.labels[i], grid.columns.back());
    table.rows[i].push_back(last && last->is_ok() ? show_load(last->speed()) : "");
    if (has_full)
      table.rows[i].push_back(is_compared(grid.labels[i]) ? wins_from(whole, grid.labels[i], floors)
                                                          : "");
  }
  if (has_full && !floors.empty() && axes.mode && axes.threads)
    table.notes.push_back(floor_note(floors, *axes.mode, *axes.threads));
  return table;
}

// A sign behind the labels of the grid's variants whose gates no figure counts.
void mark_gates(Table& table, const Grid& grid) {
  for (auto& line : table.rows)
    for (const auto& [place, row] : grid.cells)
      if (place.first == line[0] && leaves_out_gates(*row)) {
        line[0] += kGatesSign;
        break;
      }
}

}  // namespace

void keep_few_columns(Grid& grid, std::vector<std::string>& notes) {
  constexpr size_t kMost = 12;
  const size_t all = grid.columns.size();
  if (all <= kMost) return;
  std::map<std::string, size_t> rows;
  for (const auto& [place, row] : grid.cells) rows[place.second]++;
  size_t most = 0;
  for (const auto& [column, count] : rows) most = std::max(most, count);
  std::vector<std::string> fullest;
  for (size_t i = 0; i < all; i++)
    if (i == 0 || i == all - 1 || rows[grid.columns[i]] == most) fullest.push_back(grid.columns[i]);
  const size_t kept = std::min(kMost, fullest.size());
  grid.columns.clear();
  for (size_t i = 0; i < kept; i++)
    grid.columns.push_back(fullest[i * (fullest.size() - 1) / (kept - 1)]);
  notes.push_back(fmt::format("{} of {} lengths are shown; --format csv has all", kept, all));
}

std::string wins_from(const Grid& grid, const std::string& label, const NoiseFloor& floors) {
  std::map<std::string, double> shares;
  for (const auto& [place, row] : grid.cells) {
    const Axes& axes = row->key.axes;
    if (!axes.mode || !axes.threads || !axes.length) continue;
    if (const FloorAt* floor = nearest_floor(floors, *axes.mode, *axes.threads, *axes.length))
      shares[place.second] = floor->share;
  }
  const auto times_of = [&](const std::string& of) {
    TimesByLength times;
    for (const std::string& column : grid.columns)
      if (const Row* row = grid.find(of, column); row && row->is_ok())
        times[column] = {row->speed().time.ci_low, row->speed().time.ci_high,
                         row->speed().time.median};
    return times;
  };
  return faster_from(grid.columns, times_of(label), times_of(baseline_of(grid, label)), shares);
}

std::string label_of(const Row& row) { return variant_label(row.key.variant); }

// The sequences of a speed row: all of one length, served, or packed.
enum class BatchKind { alike, served, packed };
BatchKind batch_of(const Axes& axes) {
  return axes.workload ? BatchKind::served : axes.packed ? BatchKind::packed : BatchKind::alike;
}

std::vector<Table> tables_of(const std::vector<Row>& rows, const NoiseFloor& floors) {
  std::vector<Table> tables;
  // One table for each set of axes; `columns` stand in it, `hidden` are named where rows differ.
  const auto grouped = [&](Measure measure, std::set<std::string> columns,
                           const std::set<std::string>& hidden, auto column, auto make,
                           BatchKind batch = BatchKind::alike) {
    std::vector<std::string> order;
    std::map<std::string, Grid> groups;
    std::map<std::string, std::vector<const Row*>> members;
    std::vector<const Row*> measured;
    for (const Row& row : rows)
      if (row.key.measure == measure && batch_of(row.key.axes) == batch) measured.push_back(&row);
    std::set<std::string> in_rows = axes_in_rows(measured);
    for (const std::string& axis : columns) in_rows.erase(axis);
    columns.insert(in_rows.begin(), in_rows.end());
    for (const std::string& axis : hidden) {
      std::set<std::string> values;
      for (const Row* row : measured) values.insert(axis_text(*row, axis));
      if (values.size() <= 1) columns.insert(axis);
    }
    for (const Row* row : measured) {
      std::string group = axes_text(*row, columns);
      if (!groups.count(group)) order.push_back(group);
      groups[group].add(label_with(*row, in_rows), column(*row), *row);
      members[group].push_back(row);
    }
    for (const std::string& group : order) {
      tables.push_back(make(group, groups[group]));
      if (measure == Measure::speed || measure == Measure::memory) {
        mark_gates(tables.back(), groups[group]);
        const auto label = [&](const Row& row) { return label_with(row, in_rows); };
        for (std::string& note : scope_notes(members[group], rows, label))
          tables.back().notes.push_back(std::move(note));
      }
      for (std::string& note : verified_notes(members[group]))
        tables.back().notes.push_back(std::move(note));
      for (std::string& note : contract_notes(members[group]))
        tables.back().notes.push_back(std::move(note));
    }
  };
  grouped(
      Measure::speed, {"length"}, {"seed"}, length_text,
      [&](const std::string& group, const Grid& grid) { return speed_table(group, grid, floors); });
  grouped(
      Measure::speed, {"length", "batch", "mode", "scope", "causal"}, {"seed"},
      [](const Row& row) { return row.key.axes.workload.value(); },
      [](const std::string& group, const Grid& grid) {
        Table table = serving_table(group, grid);
        for (std::string& note : noise_notes(grid)) table.notes.push_back(std::move(note));
        return table;
      },
      BatchKind::served);
  grouped(
      Measure::speed, {}, {"seed"}, [](const Row& row) { return row.key.axes.packed.value(); },
      [](const std::string& group, const Grid& grid) {
        Table table = packed_table(group, grid);
        for (std::string& note : noise_notes(grid)) table.notes.push_back(std::move(note));
        return table;
      },
      BatchKind::packed);
  grouped(
      Measure::memory, {"length"}, {"seed"}, length_text, [](const std::string& group, Grid grid) {
        grid.sort_columns_as_numbers();
        Table table{
            .title = "peak memory (pool: inputs, weights, output, temporaries) by length; " + group,
            .columns = {"variant"},
            .rows = {},
            .notes = {}};
        keep_few_columns(grid, table.notes);
        for (const std::string& column : grid.columns) table.columns.push_back(column);
        fill(table, grid, [](const Row& row) {
          return human_bytes(static_cast<double>(row.memory().peak_bytes)) + verified_mark(row);
        });
        return table;
      });
  for (Table& table : accuracy_tables(rows)) tables.push_back(std::move(table));
  const auto input_of = [](const Row& row) {
    const std::string task = row.key.task ? " " + task_label(*row.key.task) : "";
    return axis_text(row, "input") + task + " x" + axis_text(row, "input_scale");
  };
  std::set<std::string> inputs;
  bool by_lengths = true;  // of one kind of input, columns are lengths; a task has its own
  for (const Row& row : rows)
    if (row.key.measure == Measure::fidelity) {
      inputs.insert(input_of(row));
      by_lengths &= row.key.axes.length.has_value();
    }
  by_lengths &= inputs.size() == 1;
  std::set<std::string> columns = {"input", "input_scale"};
  if (by_lengths) columns.insert("length");
  grouped(
      Measure::fidelity, columns, {"seed", "threads"},
      [&](const Row& row) { return by_lengths ? length_text(row) : input_of(row); },
      [&](const std::string& group, Grid grid) {
        if (by_lengths) grid.sort_columns_as_numbers();
        Table table{.title = fmt::format("relative error against exact attention, {}; {}",
                                         by_lengths ? "by length, inputs " + *inputs.begin()
                                                    : std::string("by input and scale"),
                                         group),
                    .columns = {"variant"},
                    .rows = {},
                    .notes = {}};
        for (const std::string& column : grid.columns) table.columns.push_back(column);
        fill(table, grid,
             [](const Row& row) { return fmt::format("{:.2g}", row.fidelity().relative_error); });
        return table;
      });
  grouped(
      Measure::reach, {"layers"}, {"seed", "threads"},
      [](const Row& row) { return axis_text(row, "layers"); },
      [](const std::string& group, Grid grid) {
        grid.sort_columns_as_numbers();
        Table table{.title = "reach, in positions before and after an output, by layers; " + group,
                    .columns = {"variant"},
                    .rows = {},
                    .notes = {}};
        for (const std::string& column : grid.columns) table.columns.push_back(column);
        fill(table, grid, show_reach);
        return table;
      });
  return tables;
}

}  // namespace attn
