// From rows to tables: what is compared stands in one table, what differs in contract or shape in
// another. See table.h.
#include "harness/cli/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/check.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string status_of(const Json& row) { return row.at("status").get<std::string>(); }

// "batch=1, heads=4, …": every axis but those named.
std::string axes_text(const Json& row, const std::set<std::string>& without) {
  std::string text;
  for (const auto& [name, value] : row.at("axes").items())
    if (!without.count(name) && !value.is_null())
      text += (text.empty() ? "" : ", ") + name + " " + text_of(value);
  return text;
}

// The rows of one table: label -> column -> row. Columns keep the order of first appearance.
struct Grid {
  std::vector<std::string> labels, columns;
  std::map<std::pair<std::string, std::string>, const Json*> cells;

  void add(const std::string& label, const std::string& column, const Json& row) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
    cells[{label, column}] = &row;
  }
  const Json* find(const std::string& label, const std::string& column) const {
    const auto it = cells.find({label, column});
    return it == cells.end() ? nullptr : it->second;
  }
  void sort_columns_as_numbers() {
    std::sort(columns.begin(), columns.end(),
              [](const auto& a, const auto& b) { return std::stod(a) < std::stod(b); });
  }
};

template <class Show>
void fill(Table& table, const Grid& grid, Show show) {
  std::set<std::string> reasons;
  for (const std::string& label : grid.labels) {
    std::vector<std::string> line = {label};
    for (const std::string& column : grid.columns) {
      const Json* row = grid.find(label, column);
      line.push_back(!row ? "" : status_of(*row) == "ok" ? show(*row) : status_of(*row));
      if (row && status_of(*row) != "ok")
        reasons.insert(label + " " + status_of(*row) + ": " + text_of(row->at("reason")));
    }
    table.rows.push_back(std::move(line));
  }
  table.notes.insert(table.notes.end(), reasons.begin(), reasons.end());
}

// The first measured length from which on the variant's whole interval lies under full attention's,
// to the last length; empty when one of the two was not measured there.
std::string wins_from(const Grid& grid, const std::string& label) {
  std::string from;
  for (auto column = grid.columns.rbegin(); column != grid.columns.rend(); ++column) {
    const Json *mine = grid.find(label, *column), *full = grid.find("full", *column);
    if (!mine || !full || status_of(*mine) != "ok" || status_of(*full) != "ok") break;
    if (!(mine->at("metrics").at("time_s").at("ci_high").get<double>() <
          full->at("metrics").at("time_s").at("ci_low").get<double>()))
      return from.empty() ? "not up to " + *column : from;
    from = *column;
  }
  return from;
}

std::string show_time(const Json& row) {
  const Json& time = row.at("metrics").at("time_s");
  const double median = time.at("median"),
               half = (time.at("ci_high").get<double>() - time.at("ci_low").get<double>()) / 2;
  return fmt::format("{:.3g} ±{:.0f}%", median * 1e3, std::ceil(100 * half / median));
}

// What bounds the time: of a token the state that it reads, of a pass the FMA peak.
std::string show_load(const Json& metrics) {
  if (metrics.contains("state_bytes")) return human_bytes(metrics.at("state_bytes").get<double>());
  const Json& fraction = metrics.at("peak_fraction");
  return fraction.is_number() ? fmt::format("{:.2f}", fraction.get<double>()) : "";
}

Table speed_table(const std::string& group, Grid grid) {
  grid.sort_columns_as_numbers();
  const bool decode =
      grid.cells.begin()->second->at("axes").value("mode", std::string()) == "decode";
  Table table{.title = fmt::format("time {}in ms (median ± half its 95 % interval) by length; {}",
                                   decode ? "of one token " : "", group),
              .columns = {"variant"},
              .rows = {},
              .notes = {}};
  for (const std::string& column : grid.columns) table.columns.push_back(column);
  fill(table, grid, show_time);
  table.columns.push_back((decode ? "state at " : "of FMA peak at ") + grid.columns.back());
  const bool has_full = grid.labels.size() > 1 && std::find(grid.labels.begin(), grid.labels.end(),
                                                            "full") != grid.labels.end();
  if (has_full) table.columns.push_back("faster than full from");
  for (size_t i = 0; i < grid.labels.size(); i++) {
    const Json* last = grid.find(grid.labels[i], grid.columns.back());
    table.rows[i].push_back(last && status_of(*last) == "ok" ? show_load(last->at("metrics")) : "");
    if (has_full)
      table.rows[i].push_back(grid.labels[i] == "full" ? "" : wins_from(grid, grid.labels[i]));
  }
  return table;
}

std::string show_accuracy(const Json& row) {
  const Json& m = row.at("metrics");
  return fmt::format("{:.3f} ({:+.3f})", m.at("test").get<double>(), m.at("lift").get<double>());
}

Table accuracy_table(const std::string& group, const Grid& grid) {
  Table table{.title = fmt::format("test accuracy (lift over the best shortcut){}{}",
                                   group.empty() ? "" : "; ", group),
              .columns = {"variant"},
              .rows = {},
              .notes = {}};
  for (const std::string& column : grid.columns) table.columns.push_back(column);
  fill(table, grid, show_accuracy);
  std::vector<std::string> chance = {"chance"}, shortcut = {"best shortcut"};
  for (const std::string& column : grid.columns) {
    const Json* any = nullptr;
    for (const std::string& label : grid.labels) {
      const Json* row = grid.find(label, column);
      if (row && status_of(*row) == "ok") any = row;
    }
    chance.push_back(any ? fmt::format("{:.3f}", any->at("metrics").at("chance").get<double>())
                         : "");
    std::string best;
    double score = -1;
    if (any)
      for (const auto& [name, value] : any->at("metrics").at("shortcuts").items())
        if (value.get<double>() > score) score = value.get<double>(), best = name;
    shortcut.push_back(best.empty() ? "" : fmt::format("{:.3f} {}", score, best));
  }
  table.rows.push_back(chance);
  table.rows.push_back(shortcut);
  return table;
}

// The members of `own` in which it differs from any of `others`, each written by `show`.
template <class Show>
std::string differing(const Json& own, const std::vector<Json>& others, Show show) {
  std::string text;
  for (const auto& [name, value] : own.items())
    if (std::any_of(others.begin(), others.end(),
                    [&](const Json& other) { return other.value(name, Json()) != value; }))
      text += (text.empty() ? "" : ", ") + show(name, text_of(value));
  return text;
}

// "mqar[pairs=4]": the parameters that tell it from the other rows of the same task.
std::string task_column(const Json& row, const std::vector<Json>& rows) {
  const Json& task = row.at("task");
  std::vector<Json> others;
  for (const Json& other : rows)
    if (other.at("task").is_object() && other.at("task").at("name") == task.at("name"))
      others.push_back(other.at("task").at("params"));
  const std::string text =
      differing(task.at("params"), others,
                [](const auto& name, const auto& value) { return name + "=" + value; });
  const std::string name = task.at("name");
  return text.empty() ? name : name + "[" + text + "]";
}

// "steps 100": the training settings that tell a row from others of the same task.
std::string training_text(const Json& row, const std::vector<Json>& rows) {
  if (!row.contains("training")) return {};
  std::vector<Json> others;
  for (const Json& other : rows)
    if (other.at("task") == row.at("task") && other.contains("training"))
      others.push_back(other.at("training"));
  return differing(row.at("training"), others,
                   [](const auto& name, const auto& value) { return name + " " + value; });
}

}  // namespace

std::string label_of(const Json& row) {
  const std::string name = row.at("variant").at("name");
  const Params defaults(name, find_variant(name).params);
  std::string text;
  for (const auto& [param, value] : row.at("variant").at("params").items()) {
    const auto it = defaults.values().find(param);
    if (it != defaults.values().end() && text_of(value) == to_string(it->second)) continue;
    text += (text.empty() ? "" : ",") + param + "=" + text_of(value);
  }
  return text.empty() ? name : name + "[" + text + "]";
}

std::vector<Table> tables_of(const std::vector<Json>& rows) {
  std::vector<Table> tables;
  // One table for each set of axes; `columns` stand in it, `hidden` are named where rows differ.
  const auto grouped = [&](const std::string& measure, std::set<std::string> columns,
                           const std::set<std::string>& hidden, auto column, auto make) {
    std::vector<std::string> order;
    std::map<std::string, Grid> groups;
    for (const std::string& axis : hidden) {
      std::set<Json> values;
      for (const Json& row : rows)
        if (row.at("measure") == measure) values.insert(row.at("axes").value(axis, Json()));
      if (values.size() <= 1) columns.insert(axis);
    }
    for (const Json& row : rows) {
      if (row.at("measure") != measure) continue;
      std::string group = axes_text(row, columns);
      if (const std::string training = training_text(row, rows); !training.empty())
        group += ", " + training;
      if (!groups.count(group)) order.push_back(group);
      groups[group].add(label_of(row), column(row), row);
    }
    for (const std::string& group : order) tables.push_back(make(group, groups[group]));
  };
  const auto length = [](const Json& row) { return text_of(row.at("axes").at("length")); };
  grouped("speed", {"length"}, {"seed"}, length, speed_table);
  grouped("memory", {"length"}, {"seed"}, length, [](const std::string& group, Grid grid) {
    grid.sort_columns_as_numbers();
    Table table{
        .title = "peak memory (pool: inputs, weights, output, temporaries) by length; " + group,
        .columns = {"variant"},
        .rows = {},
        .notes = {}};
    for (const std::string& column : grid.columns) table.columns.push_back(column);
    fill(table, grid, [](const Json& row) {
      return human_bytes(row.at("metrics").at("peak_bytes").get<double>());
    });
    return table;
  });
  grouped(
      "accuracy", {"length"}, {"threads"}, [&](const Json& row) { return task_column(row, rows); },
      accuracy_table);
  grouped(
      "fidelity", {"input", "input_scale"}, {"seed", "threads"},
      [](const Json& row) {
        return text_of(row.at("axes").at("input")) + " x" +
               text_of(row.at("axes").at("input_scale"));
      },
      [](const std::string& group, const Grid& grid) {
        Table table{.title = "relative error against exact attention, by input and scale; " + group,
                    .columns = {"variant"},
                    .rows = {},
                    .notes = {}};
        for (const std::string& column : grid.columns) table.columns.push_back(column);
        fill(table, grid, [](const Json& row) {
          return fmt::format("{:.2g}", row.at("metrics").at("relative_error").get<double>());
        });
        return table;
      });
  return tables;
}

}  // namespace attn::cli
