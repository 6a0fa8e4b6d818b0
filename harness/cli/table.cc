// attnbench table: the tables of `run`, from rows files. Times, bytes and errors of two machines or
// builds never share a table; scores may.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/add_once.h"
#include "harness/cli/rendered.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/machines.h"
#include "harness/compare/row_pairs.h"
#include "harness/crossing/report.h"
#include "harness/tables/joined.h"

namespace attn::cli {
namespace {

struct RowsOfMachine {
  RunLine run;  // of its first file
  std::vector<Row> rows;
  std::map<std::string, std::string> places;  // cell -> the file that holds it
  std::vector<Json> protocols;                // of its files, each once
};

void add_rows(const RowsFile& file, RowsOfMachine& to) {
  for (const Row& row : file.rows) {
    const auto [place, is_new] = to.places.emplace(what_is_measured(row.key), file.path);
    ATTN_CHECK(is_new,
               "the {} cell {} of {} is in '{}' and in '{}'; give one of the files, or both to "
               "attnbench compare",
               name_of(row.key.measure), row.cell, name_of_variant(row.key.variant), place->second,
               file.path);
    to.rows.push_back(row);
  }
}

std::vector<RowsOfMachine> by_machine(const std::vector<RowsFile>& runs) {
  std::vector<RowsOfMachine> machines;
  for (const RowsFile& file : runs) {
    RowsOfMachine* same = nullptr;
    for (RowsOfMachine& known : machines)
      if (origin_difference(known.run, file.run).empty()) same = &known;
    if (!same)
      same = &machines.emplace_back(RowsOfMachine{.run = file.run});
    else
      for (const SweepConfig& sweep : file.run.config.sweeps)
        same->run.config.sweeps.push_back(sweep);
    if (same->run.noise_floor.empty()) same->run.noise_floor = file.run.noise_floor;
    for (const Json& protocol : file.protocols) add_once(same->protocols, protocol);
    add_rows(file, *same);
  }
  return machines;
}

bool is_score(const Row& row) { return row.key.measure == Measure::accuracy; }

// Scores of two machines may share a mean, times may not. A machine that has nothing but scores
// joins the first machine that has more, or the first of all, unless both have a cell in common.
void join_scores(std::vector<RowsOfMachine>& machines) {
  const auto only_scores = [](const RowsOfMachine& machine) {
    return std::all_of(machine.rows.begin(), machine.rows.end(), is_score);
  };
  auto home = std::find_if_not(machines.begin(), machines.end(), only_scores);
  if (home == machines.end()) home = machines.begin();
  for (RowsOfMachine& other : machines) {
    const auto is_there = [&](const auto& place) { return home->places.count(place.first) > 0; };
    if (&other == &*home || !only_scores(other) ||
        std::any_of(other.places.begin(), other.places.end(), is_there))
      continue;
    home->rows.insert(home->rows.end(), other.rows.begin(), other.rows.end());
    home->places.merge(other.places);
    for (const Json& protocol : other.protocols) add_once(home->protocols, protocol);
    other.rows.clear();
  }
  std::erase_if(machines, [](const RowsOfMachine& machine) { return machine.rows.empty(); });
}

// Tables show variants in the order of their first rows: `by` decides at the longest length first.
void sort_rows(std::vector<Row>& rows, const std::string& by) {
  const Measure measure = by == "time" ? Measure::speed : Measure::memory;
  const auto others = std::stable_partition(
      rows.begin(), rows.end(), [&](const Row& row) { return row.key.measure == measure; });
  const auto key = [&](const Row& row) {
    const double value = !row.is_ok()                ? std::numeric_limits<double>::infinity()
                         : measure == Measure::speed ? row.speed().time.median
                                                     : static_cast<double>(row.memory().peak_bytes);
    return std::pair(-row.key.axes.length.value_or(0), value);
  };
  std::stable_sort(rows.begin(), others,
                   [&](const Row& a, const Row& b) { return key(a) < key(b); });
}

// "Example CPU, 2 cores, g++ 12": what tells the tables of one machine and build from others.
std::string name_of_machine(size_t number, const RunLine& run) {
  const auto fact = [&](const char* name) {
    const auto found = run.environment.find(name);
    return found == run.environment.end() ? std::string("unknown") : text_of(*found);
  };
  return fmt::format("machine or build {}: {}, {} cores, {}", number, fact("cpu_model"),
                     fact("cores"), fact("compiler"));
}

// Adds a machine's tables; where there are `several` machines, their titles name it.
void add_tables(std::vector<Table> found, size_t number, const RowsOfMachine& machine, bool several,
                const std::string& format, std::vector<Table>& to) {
  name_protocols(machine.protocols, format, found);
  for (Table& table : found) {
    if (several) table.title += "; " + name_of_machine(number, machine.run);
    to.push_back(std::move(table));
  }
}

// One record for each shape that has scores, from the rows of one machine; "" where none has.
std::string rendered_joined(const std::string& format, const std::vector<RowsOfMachine>& machines,
                            bool has_color) {
  std::vector<Json> lines;
  std::vector<Table> tables;
  size_t number = 0;
  for (const RowsOfMachine& machine : machines) {
    const std::vector<JoinedRecord> records = joined_records(machine.rows);
    for (Json& line : joined_lines(records)) lines.push_back(std::move(line));
    add_tables(joined_tables(records), ++number, machine, machines.size() > 1, format, tables);
  }
  return tables.empty() ? "" : rendered(format, lines, tables, has_color);
}

// Of the searches for crossings alone: a line each for json and csv, else tables.
std::string rendered_crossings(const std::string& format,
                               const std::vector<RowsOfMachine>& machines, bool has_color) {
  std::vector<Json> lines;
  std::vector<Table> tables;
  for (const RowsOfMachine& machine : machines) {
    const std::vector<Contest> contests = contests_of(machine.rows, machine.run.config);
    const std::vector<Standing> found = standings(contests, machine.rows);
    for (Json& line : crossing_lines(contests, found)) lines.push_back(std::move(line));
    add_tables(crossing_tables(contests, found), 1, machine, false, format, tables);
  }
  return rendered(format, lines, tables, has_color);
}

std::vector<Table> tables_of_machine(const RowsOfMachine& machine, bool with_ledger,
                                     bool with_crossings) {
  std::vector<Table> tables = every_table(machine.rows, machine.run.noise_floor, with_ledger);
  if (!with_crossings) return tables;
  const std::vector<Contest> contests = contests_of(machine.rows, machine.run.config);
  for (Table& table : crossing_tables(contests, standings(contests, machine.rows)))
    tables.push_back(std::move(table));
  return tables;
}

// Lines of json and csv do not say of which machine they are.
void require_one_machine(const std::vector<RowsOfMachine>& machines, const std::string& format) {
  ATTN_CHECK(machines.size() == 1 || (format != "json" && format != "csv"),
             "--format {} does not tell machines apart, and the files are of {} machines or "
             "builds; give one at a time",
             format, machines.size());
}

int run_table(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(), "table needs a rows file; usage: attnbench table {}",
             table_verb().usage);
  const std::string format = arguments.one_of("format", {"table", "md", "csv", "json", "latex"});
  const std::string color = arguments.one_of("color", {"auto", "always", "never"});
  const std::string output = arguments.get("output");
  const bool has_color =
      (output.empty() || output == kStdoutPath) && wants_color(color, Stream::out);
  const std::vector<RowsFile> runs = read_runs(arguments.words());
  std::vector<RowsOfMachine> machines = by_machine(runs);
  join_scores(machines);
  if (arguments.has("sort"))
    for (RowsOfMachine& machine : machines)
      sort_rows(machine.rows, arguments.one_of("sort", {"time", "memory"}));
  const bool with_ledger = arguments.has("ledger");
  const bool with_crossings =
      std::any_of(runs.begin(), runs.end(), [](const RowsFile& run) { return !run.find.empty(); });
  if (arguments.has("crossings")) {
    ATTN_CHECK(!with_ledger,
               "--crossings prints crossings alone and --ledger the parity ledger; "
               "drop one of them");
    ATTN_CHECK(with_crossings,
               "'{}' holds no search for crossings; measure one by attnbench run "
               "--find crossing",
               arguments.words().front());
    require_one_machine(machines, format);
    deliver(rendered_crossings(format, machines, has_color), output, arguments.words());
    return kOk;
  }
  if (arguments.has("joined")) {
    ATTN_CHECK(!with_ledger && !arguments.has("crossings"),
               "--joined prints one record alone; drop --{}", with_ledger ? "ledger" : "crossings");
    require_one_machine(machines, format);
    const std::string text = rendered_joined(format, machines, has_color);
    if (text.empty()) {
      warn("attnbench: nothing matched: the files hold no score, to which --joined joins times\n");
      return kNothingMatched;
    }
    deliver(text, output, arguments.words());
    return kOk;
  }
  std::vector<Row> all;
  std::vector<Table> tables;
  size_t number = 0;
  for (const RowsOfMachine& machine : machines) {
    number++;
    all.insert(all.end(), machine.rows.begin(), machine.rows.end());
    if (format == "json" || format == "csv") continue;
    add_tables(tables_of_machine(machine, with_ledger, with_crossings), number, machine,
               machines.size() > 1, format, tables);
  }
  if (all.empty()) {
    warn("attnbench: nothing matched: the files hold no cell\n");
    return kNothingMatched;
  }
  deliver(tables.empty() ? rendered(format, all, {}, with_ledger, has_color)
                         : rendered(format, tables, has_color),
          output, arguments.words());
  return kOk;
}

}  // namespace

Verb table_verb() {
  return {.name = "table",
          .usage = "ROWS... [OPTION...]",
          .summary = "the tables of run, from rows files; LaTeX too",
          .options = {{"format", 0, "KIND", "table (default), md, csv, json or latex"},
                      {"ledger", 0, "", "the parity ledger too"},
                      {"crossings", 0, "", "of rows of run --find crossing, the crossings alone"},
                      {"joined", 0, "",
                       "one line a variant: time, memory, state and error at the very shape of "
                       "its scores"},
                      {"sort", 0, "NAME", "time or memory: variants by it, the least first"},
                      {"output", 'o', "FILE", "default: standard output"},
                      {"color", 0, "WHEN", "auto (default), always or never"}},
          .max_words = 1000,
          .run = run_table};
}

}  // namespace attn::cli
