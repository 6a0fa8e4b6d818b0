// attnbench fit: how time and memory grow with length, and whether tasks order variants as language
// does, from rows.
#include "harness/cli/rendered.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/agreement_report.h"
#include "harness/compare/machines.h"
#include "harness/compare/row_pairs.h"
#include "harness/growth/report.h"

namespace attn::cli {
namespace {

constexpr int64_t kMostLength = int64_t{1} << 40;

// Error where two files come from two machines or builds: their times make no one law.
std::vector<Row> rows_of_one_machine(const std::vector<std::string>& paths) {
  std::vector<Row> rows;
  RowsFile first;
  for (const std::string& path : paths) {
    RowsFile file = read_rows_file(path);
    if (first.path.empty()) first = {.path = path, .run = file.run, .rows = {}};
    const std::string other = origin_difference(first.run, file.run);
    ATTN_CHECK(other.empty(), "'{}' and '{}' are of two machines or builds ({}); fit one at a time",
               first.path, path, other);
    rows.insert(rows.end(), file.rows.begin(), file.rows.end());
  }
  return rows;
}

int run_fit(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(), "fit needs a rows file; usage: attnbench fit {}",
             fit_verb().usage);
  const std::string format = arguments.one_of("format", {"table", "md", "csv", "json", "latex"});
  const std::string measure = arguments.one_of("measure", {"both", "speed", "memory"});
  GrowthRequest request;
  if (measure == "speed") request.measures = {Measure::speed};
  if (measure == "memory") request.measures = {Measure::memory};
  request.from = arguments.integer("from", 0, 1, kMostLength);
  request.to = arguments.integer("to", 0, 1, kMostLength);
  ATTN_CHECK(request.to == 0 || request.from <= request.to, "--from {} is above --to {}",
             request.from, request.to);
  if (arguments.has("at")) request.at = arguments.integer("at", 0, 1, kMostLength);
  const std::string output = arguments.get("output");
  const bool color =
      (output.empty() || output == kStdoutPath) &&
      wants_color(arguments.one_of("color", {"auto", "always", "never"}), Stream::out);
  const std::vector<Row> rows = rows_of_one_machine(arguments.words());
  const std::vector<Growth> growths = growth_of(rows, request);
  const Agreements agreements = measure == "both" ? agreements_of(rows) : Agreements{};
  if (growths.empty() && agreements.empty()) {
    warn(
        "attnbench: nothing matched: no speed or memory row of these lengths, and no scores of a "
        "task in bits, such as lm, beside those of another task\n");
    return kNothingMatched;
  }
  std::vector<Json> lines = growth_lines(growths, request.at);
  for (Json& line : agreement_lines(agreements)) lines.push_back(std::move(line));
  std::vector<Table> tables = growth_tables(growths, request.at);
  for (Table& table : agreement_tables(agreements)) tables.push_back(std::move(table));
  deliver(rendered(format, lines, tables, color), output, arguments.words());
  return kOk;
}

}  // namespace

Verb fit_verb() {
  return {.name = "fit",
          .usage = "ROWS... [OPTION...]",
          .summary =
              "exponent of time and memory by length, and order of variants by task, from "
              "rows",
          .options = {{"from", 0, "N", "leave out shorter lengths"},
                      {"to", 0, "N", "leave out longer lengths"},
                      {"at", 0, "N", "extrapolate to this length"},
                      {"measure", 0, "NAME", "speed or memory alone; default: both, and tasks"},
                      {"format", 0, "KIND", "table (default), md, csv, json or latex"},
                      {"output", 'o', "FILE", "default: standard output"},
                      {"color", 0, "WHEN", "auto (default), always or never"}},
          .max_words = 1000,
          .run = run_fit};
}

}  // namespace attn::cli
