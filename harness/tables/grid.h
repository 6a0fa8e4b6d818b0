// A table under way: label -> column -> row, and what its cells show. Private to the tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/tables/table.h"
#include "harness/tables/verified_notes.h"
#include "tasks/api/task.h"

namespace attn {

inline std::string status_of(const Row& row) { return name_of(row.result.status); }

// Behind a score of a training that was cut off, and the note on it.
inline constexpr const char* kUnfinishedSign = "†";
inline constexpr const char* kUnfinishedNote =
    "†: the training was cut off by its steps: what was learned by then, not ranked; give it more "
    "steps, or --train schedule=wsd, which ends by itself";

// Of an accuracy row that is ok.
inline bool lower_is_better(const Row& row) { return is_error(row.accuracy().metric); }

// "batch 1, heads 4, …": every axis but those named.
inline std::string axes_text(const Row& row, const std::set<std::string>& without) {
  std::string text;
  for (const auto& [name, value] : named_values(row.key.axes))
    if (!without.count(name)) text += (text.empty() ? "" : ", ") + name + " " + to_string(value);
  return text;
}

inline std::string length_text(const Row& row) {
  return std::to_string(row.key.axes.length.value());
}

// Of a speed row, in ms: the median, half of its interval, and marks; its note says so.
inline std::string show_time(const Row& row) {
  const Summary& time = row.speed().time;
  const double half = (time.ci_high - time.ci_low) / 2;
  const double percent = std::ceil(100 * half / time.median);
  return fmt::format("{:.3g} ±{}%{}{}", time.median * 1e3,
                     percent > 100 ? ">100" : fmt::format("{:.0f}", percent),
                     row.result.noisy.empty() ? "" : "*", verified_mark(row));
}

// The rows of one table: label -> column -> row. Columns keep the order of first appearance.
struct Grid {
  std::vector<std::string> labels, columns;
  std::map<std::pair<std::string, std::string>, const Row*> cells;

  void add(const std::string& label, const std::string& column, const Row& row) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
    cells[{label, column}] = &row;
  }
  const Row* find(const std::string& label, const std::string& column) const {
    const auto it = cells.find({label, column});
    return it == cells.end() ? nullptr : it->second;
  }
  void sort_columns_as_numbers() {
    std::sort(columns.begin(), columns.end(),
              [](const auto& a, const auto& b) { return std::stod(a) < std::stod(b); });
  }
};

// Where there are more than a screen is wide, as of a search for crossings: columns in which most
// rows stand, evenly spread, with the first and the last; a note says so.
void keep_few_columns(Grid& grid, std::vector<std::string>& notes);

template <class Show>
void fill(Table& table, const Grid& grid, Show show) {
  std::set<std::string> reasons;
  for (const std::string& label : grid.labels) {
    std::vector<std::string> line = {label};
    for (const std::string& column : grid.columns) {
      const Row* row = grid.find(label, column);
      line.push_back(!row ? "" : row->is_ok() ? show(*row) : status_of(*row));
      if (row && !row->is_ok())
        reasons.insert(label + " " + status_of(*row) + ": " + row->result.reason);
    }
    table.rows.push_back(std::move(line));
  }
  table.notes.insert(table.notes.end(), reasons.begin(), reasons.end());
}

// The first measured length from which on the variant's whole interval lies under full attention's,
// to the last length, by more than the noise floor; empty when one of the two was not measured
// there.
std::string wins_from(const Grid& grid, const std::string& label, const NoiseFloor& floors);

// Accuracy cells, a column a task: over seeds, and of tuned settings those chosen on validation.
std::vector<Table> accuracy_tables(const std::vector<Row>& rows);

// Of accuracy rows that were also scored at longer lengths, with other parameters of the variant or
// of the task, or that decoded output sequences: a table a task of scores by length, one of scores
// by each kind of parameters, and one of decoding. `rows` without those that tuning dropped.
std::vector<Table> length_tables(const std::vector<Row>& rows);
std::vector<Table> params_tables(const std::vector<Row>& rows);
std::vector<Table> task_tables(const std::vector<Row>& rows);
std::vector<Table> decoding_tables(const std::vector<Row>& rows);

// "a, b, c".
std::string joined(const std::set<std::string>& texts);

// What a table of these rows must say: where exact softmax attention stands beside something else,
// and where a variant computes another thing at these lengths or masks than its name tells.
std::vector<std::string> contract_notes(const std::vector<const Row*>& rows);

// "adding, mean squared error": the task's label, and the metric where it is not accuracy.
std::string task_heading(const Row& row, const std::vector<Row>& rows);
// "steps 100": the training settings that tell a row from others of the same task, but for those in
// `without` and those that were chosen for each variant.
std::string training_text(const Row& row, const std::vector<Row>& rows,
                          const std::vector<std::string>& without = {});

}  // namespace attn
