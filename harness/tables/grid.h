// A table under way: label -> column -> row, and what its cells show. Private to the tables.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/tables/table.h"
#include "tasks/api/task.h"

namespace attn {

inline std::string status_of(const Json& row) { return row.at("status").get<std::string>(); }

inline bool lower_is_better(const Json& row) {
  return is_error(row.at("metrics").value("metric", ""));
}

// "batch=1, heads=4, …": every axis but those named.
inline std::string axes_text(const Json& row, const std::set<std::string>& without) {
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
std::string wins_from(const Grid& grid, const std::string& label);

// Accuracy cells, a column a task: over seeds, and of tuned settings those chosen on validation.
std::vector<Table> accuracy_tables(const std::vector<Json>& rows);

// Of accuracy rows that were also scored at longer lengths or that decoded output sequences: a
// table a task of scores by length, and one of decoding. `rows` without those that tuning dropped.
std::vector<Table> length_tables(const std::vector<Json>& rows);
std::vector<Table> decoding_tables(const std::vector<Json>& rows);

// "a, b, c".
std::string joined(const std::set<std::string>& texts);

// What a table of these rows must say: where exact softmax attention stands beside something else,
// and where a variant computes another thing at these lengths or masks than its name tells.
std::vector<std::string> contract_notes(const std::vector<const Json*>& rows);

// "adding, mean squared error": the task's label, and the metric where it is not accuracy.
std::string task_heading(const Json& row, const std::vector<Json>& rows);
// "steps 100": the training settings that tell a row from others of the same task, but for those in
// `without` and those that were chosen for each variant.
std::string training_text(const Json& row, const std::vector<Json>& rows,
                          const std::set<std::string>& without = {});

}  // namespace attn
