// Rows as people read them: a table a measure, or json, csv and md for other programs.
#pragma once

#include <string>
#include <vector>

#include "harness/cell/row.h"

namespace attn {

struct Table {
  std::string title;
  std::vector<std::string> columns;  // the first is the row's label
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;  // lines below it
};

// The cells of a sweep: speed, memory, accuracy, fidelity and reach, one table for each set of axes
// that may be compared. `floors`: of the machine of the rows.
std::vector<Table> tables_of(const std::vector<Row>& rows, const NoiseFloor& floors = {});
// What each variant was given: parameters, FLOPs, precision, threads, kernel. Empty: no row says.
std::vector<Table> ledger_tables(const std::vector<Row>& rows);
// Where the time of a pass goes, a column a part, for rows of run --breakdown. Empty: there is
// none.
std::vector<Table> breakdown_tables(const std::vector<Row>& rows);
// Those of the table, and what the sign of variants in Python says where one stands in it.
std::vector<std::string> notes_under(const Table& table);
std::string render_text(const Table& table, bool color);
std::string render_markdown(const Table& table);
std::string render_latex(const Table& table);     // a floating table of booktabs
std::string latex_text(const std::string& text);  // nothing in it is a command
// A line an object, nested names joined by dots.
std::string render_csv(const std::vector<Json>& objects);

// "performer[features=64]": the parameters that are not the default.
std::string label_of(const Row& row);

std::string human_bytes(double bytes);      // 12.0 MiB
std::string human_seconds(double seconds);  // 3.21 ms, 1 m 40 s

}  // namespace attn
