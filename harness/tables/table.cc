// From rows to tables: what is compared stands in one table, what differs in contract or shape in
// another. See table.h.
#include "harness/tables/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/sweep/labels.h"
#include "harness/tables/faster_from.h"
#include "harness/tables/grid.h"
#include "variants/catalog.h"

namespace attn {
namespace {

std::string show_time(const Json& row) {
  const Json& time = row.at("metrics").at("time_s");
  const double median = time.at("median"),
               half = (time.at("ci_high").get<double>() - time.at("ci_low").get<double>()) / 2;
  return fmt::format("{:.3g} ±{:.0f}%", median * 1e3, std::ceil(100 * half / median));
}

// What the intervals of these cells leave out.
std::vector<std::string> interval_notes(const Grid& grid) {
  size_t alone = 0, timed = 0;
  for (const auto& [place, row] : grid.cells) {
    if (status_of(*row) != "ok") continue;
    timed++;
    alone += !row->contains("visits") || row->at("visits").size() == 1;
  }
  if (alone == 0) return {};
  return {
      fmt::format("{}: the repetitions are taken as of one process, and what differs from "
                  "process to process is not in the interval",
                  alone == timed ? "intervals" : fmt::format("{} of {} intervals", alone, timed))};
}

// Whose FLOPs, and so shares of the peak, are counted.
std::vector<std::string> cost_notes(const Grid& grid) {
  std::set<std::string> counted;
  for (const auto& [place, row] : grid.cells)
    if (status_of(*row) == "ok" &&
        row->value("ledger", Json::object()).value("cost", "") == "measured")
      counted.insert(place.first);
  if (counted.empty()) return {};
  return {fmt::format("FLOPs of {} are measured: no cost is declared, and no roofline can be had",
                      joined(counted))};
}

// What bounds the time: of a token the state that it reads, of a pass the FMA peak.
std::string show_load(const Json& metrics) {
  if (metrics.value("state_bytes", Json()).is_number())
    return human_bytes(metrics.at("state_bytes").get<double>());
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
              .notes = interval_notes(grid)};
  for (const std::string& column : grid.columns) table.columns.push_back(column);
  fill(table, grid, show_time);
  table.columns.push_back((decode ? "state at " : "of FMA peak at ") + grid.columns.back());
  for (std::string& note : cost_notes(grid)) table.notes.push_back(std::move(note));
  const bool has_full = grid.labels.size() > 1 &&
                        std::find(grid.labels.begin(), grid.labels.end(), exact_reference().name) !=
                            grid.labels.end();
  if (has_full) table.columns.push_back("faster than full from");
  for (size_t i = 0; i < grid.labels.size(); i++) {
    const Json* last = grid.find(grid.labels[i], grid.columns.back());
    table.rows[i].push_back(last && status_of(*last) == "ok" ? show_load(last->at("metrics")) : "");
    if (has_full)
      table.rows[i].push_back(
          grid.labels[i] == exact_reference().name ? "" : wins_from(grid, grid.labels[i]));
  }
  return table;
}

}  // namespace

std::string wins_from(const Grid& grid, const std::string& label) {
  const auto times_of = [&](const std::string& of) {
    TimesByLength times;
    for (const std::string& column : grid.columns)
      if (const Json* row = grid.find(of, column); row && status_of(*row) == "ok") {
        const Json& time = row->at("metrics").at("time_s");
        times[column] = {time.at("ci_low").get<double>(), time.at("ci_high").get<double>()};
      }
    return times;
  };
  return faster_from(grid.columns, times_of(label), times_of(exact_reference().name));
}

std::string label_of(const Json& row) { return variant_label(row.at("variant")); }

std::vector<Table> tables_of(const std::vector<Json>& rows) {
  std::vector<Table> tables;
  // One table for each set of axes; `columns` stand in it, `hidden` are named where rows differ.
  const auto grouped = [&](const std::string& measure, std::set<std::string> columns,
                           const std::set<std::string>& hidden, auto column, auto make) {
    std::vector<std::string> order;
    std::map<std::string, Grid> groups;
    std::map<std::string, std::vector<const Json*>> members;
    for (const std::string& axis : hidden) {
      std::set<Json> values;
      for (const Json& row : rows)
        if (row.at("measure") == measure) values.insert(row.at("axes").value(axis, Json()));
      if (values.size() <= 1) columns.insert(axis);
    }
    for (const Json& row : rows) {
      if (row.at("measure") != measure) continue;
      std::string group = axes_text(row, columns);
      if (!groups.count(group)) order.push_back(group);
      groups[group].add(label_of(row), column(row), row);
      members[group].push_back(&row);
    }
    for (const std::string& group : order) {
      tables.push_back(make(group, groups[group]));
      for (std::string& note : contract_notes(members[group]))
        tables.back().notes.push_back(std::move(note));
    }
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
  for (Table& table : accuracy_tables(rows)) tables.push_back(std::move(table));
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

}  // namespace attn
