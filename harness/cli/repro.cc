// attnbench repro: the command that measures a cell of a rows file again, and whether what it finds
// agrees with the row.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/check.h"
#include "harness/cli/run_options.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/compare.h"
#include "harness/compare/machines.h"
#include "harness/plan/axes.h"
#include "harness/plan/packings.h"
#include "harness/plan/workloads.h"
#include "harness/plan/plan.h"
#include "harness/plan/python_variants.h"
#include "harness/run/run.h"
#include "harness/store/user_cache.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr size_t kFewestDigits = 4;  // of a cell's id

// The row, and the run that it is of. Error unless `id` begins the id of one cell.
RowsFile only(const std::vector<RowsFile>& runs, const std::string& id) {
  ATTN_CHECK(
      id.size() >= kFewestDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos,
      "'{}' is no cell: give {} or more of the 16 hexadecimal digits of a row's \"cell\"", id,
      kFewestDigits);
  RowsFile found;
  for (const RowsFile& run : runs)
    for (const Row& row : run.rows) {
      if (!row.cell.starts_with(id)) continue;
      ATTN_CHECK(found.rows.empty(), "'{}' begins two cells of '{}', {} and {}; give more digits",
                 id, run.path, found.rows[0].cell, row.cell);
      found = {.path = run.path, .run = run.run, .rows = {row}};
    }
  ATTN_CHECK(!found.rows.empty(), "no cell of '{}' begins with '{}'", runs.front().path, id);
  return found;
}

// The file of a variant in Python, as the run line names it, unless --plugin named another.
void load_python_of(const std::string& path, const Row& row) {
  const std::string& name = row.key.variant.name;
  if (row.provided_by != kByPython || python_variant(name)) return;
  for (const Json& line : read_rows(path)) {
    if (is_cell(line) || line.at("run") != row.run || !line.at("config").contains("python"))
      continue;
    for (const Json& python : line.at("config").at("python"))
      if (python.at("variant") == name)
        catalogued(fmt::format("{}{}:{}", kPythonPrefix, python.at("file").get<std::string>(),
                               python.at("name").get<std::string>()));
  }
  ATTN_CHECK(python_variant(name),
             "'{}' does not say which file {} is of; name it by --plugin python:FILE.py:NAME", path,
             name);
}

template <class Names>
bool is_one_of(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

SweepRequest request_of_cell(const CellKey& key) {
  SweepRequest request;
  const PythonVariant* const python = python_variant(key.variant.name);
  const std::string bracket = plugin_text(key.variant).substr(key.variant.name.size());
  request.variants = {(python ? python->spec() : key.variant.name) + bracket};
  if (key.task) request.tasks = {plugin_text(*key.task)};
  request.axes["measure"] = name_of(key.measure);
  for (const auto& [name, value] : named_values(key.axes)) {
    // A row also holds axes that follow from the others, such as causal of a task.
    const bool follows = (reads_model(key) && is_one_of(kDecidedByModel, name)) ||
                         (key.axes.workload && is_one_of(kDecidedByWorkload, name)) ||
                         is_decided_by_list(key.axes, name);
    if (!follows && find_axis(name).applies_to(key.measure)) request.axes[name] = to_string(value);
  }
  if (key.training) request.training = key.training->str();
  for (const Params& params : key.test_with)
    request.test_with += (request.test_with.empty() ? "" : ";") + params.str();
  for (const Params& params : key.test_on)
    request.test_on += (request.test_on.empty() ? "" : ";") + params.str();
  return request;
}

std::string command_of(const SweepRequest& request, const std::vector<std::string>& plugins) {
  std::string text = "attnbench run";
  for (const std::string& variant : request.variants) text += " -v " + shell_word(variant);
  for (const std::string& task : request.tasks) text += " -t " + shell_word(task);
  text += " --measure " + request.axes.at("measure");
  for (const AxisInfo& axis : all_axes())
    if (const auto it = request.axes.find(axis.spec.name); it != request.axes.end())
      text += fmt::format(" --{} {}", option_of(axis), shell_word(it->second));
  if (!request.training.empty()) text += " --train " + shell_word(request.training);
  for (const std::string& file : plugins) text += " --plugin " + shell_word(file);
  if (!request.test_with.empty()) text += " --test-with " + shell_word(request.test_with);
  if (!request.test_on.empty()) text += " --test-on " + shell_word(request.test_on);
  return text;
}

std::string figure_text(const Compared& pair, double value) {
  return pair.unit == "s"       ? human_seconds(value)
         : pair.unit == "bytes" ? human_bytes(value)
                                : fmt::format("{:.4g}", value);
}

// Prints how the two figures compare; the exit code.
int tell(const Comparison& comparison) {
  if (comparison.pairs.empty()) {
    print(comparison.left_out.empty() ? "nothing to compare\n"
                                      : "not compared: " + comparison.left_out[0].reason + "\n");
    return comparison.left_out.empty() ? kNothingMatched : kCellFailed;
  }
  const Compared& pair = comparison.pairs[0];
  const bool agrees = pair.verdict == Judgement::same || pair.verdict == Judgement::undecided;
  std::string text =
      fmt::format("{} then, {} now", figure_text(pair, pair.before), figure_text(pair, pair.after));
  if (pair.change && pair.low && pair.high)
    text += fmt::format(" ({} {:.3g}, 95 % interval {:.3g} to {:.3g}, {})",
                        pair.is_ratio ? "ratio" : "difference", *pair.change, *pair.low, *pair.high,
                        pair.basis);
  print(fmt::format(
      "{}: {}\n", text,
      agrees ? "agrees" : "does not agree: " + verdict_word(pair.measure, pair.verdict)));
  return agrees ? kOk : kRegression;
}

int run_repro(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  ATTN_CHECK(words.size() == 2,
             "repro needs a rows file and a cell, not {} words; usage: attnbench "
             "repro {}",
             words.size(), repro_verb().usage);
  const RowsFile before = only(read_runs(words[0]), words[1]);
  const Row& row = before.rows[0];
  load_python_of(words[0], row);
  SweepRequest request = request_of_cell(row.key);
  print(command_of(request, arguments.all("plugin")) + "\n");
  if (arguments.has("print")) return kOk;
  request.pilots = UserCache::default_file("pilots.json");
  request.passed_checks = UserCache::default_file("checks.json");
  const std::string given = arguments.get("output");
  const std::string temporary =
      (std::filesystem::temp_directory_path() / fmt::format("attnbench-repro-{}.jsonl", getpid()))
          .string();
  request.output = given.empty() ? temporary : given;
  request.argv = {"repro"};
  for (const std::string& word : arguments.as_given()) request.argv.push_back(word);
  if (!given.empty()) {
    require_writable(given);
    ATTN_CHECK(!std::filesystem::exists(given), "'{}' exists; name another file", given);
  }
  const Plan sweep = plan(request);
  ATTN_CHECK(sweep.cells.size() == 1, "the row makes {} cells of this program, not one",
             sweep.cells.size());
  if (sweep.cells[0].id != row.cell)
    warn("attnbench: the row is of other sources than this program's\n");
  const SweepResult result = run_sweep(request, sweep, {});
  const RowsFile after = {.path = request.output, .run = result.run, .rows = result.rows};
  if (given.empty()) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
  if (result.signal || result.gate_failed) return exit_code(result);
  const std::string machine = machine_difference(before.run, after.run);
  if (row.key.measure == Measure::speed && !machine.empty()) {
    print(fmt::format("times of two machines are not compared ({})\n", machine));
    return exit_code(result);
  }
  return tell(compare(before, after, {.across_machines = !machine.empty(), .across_builds = true}));
}

}  // namespace

Verb repro_verb() {
  return {.name = "repro",
          .usage = "ROWS CELL [OPTION...]",
          .summary = "measures a cell of a rows file again; exit 3: what it finds does not agree",
          .options = {{"print", 0, "", "print the command and run nothing"},
                      {"output", 'o', "FILE", "keep the new row in this file"},
                      plugin_option()},
          .max_words = 2,
          .run = run_repro};
}

}  // namespace attn::cli
