// attnbench run: a sweep from axes, profile or config file to rows on disk and tables on stdout.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/cgroup.h"
#include "core/base/check.h"
#include "core/base/one_line.h"
#include "core/base/parallel.h"
#include "harness/cli/dry_run.h"
#include "harness/cli/find.h"
#include "harness/cli/progress.h"
#include "harness/cli/rendered.h"
#include "harness/cli/run_options.h"
#include "harness/cli/sweep_request.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/crossing/report.h"
#include "harness/measure/workload.h"
#include "harness/plan/halving.h"
#include "harness/process/process.h"
#include "harness/run/halving_run.h"
#include "harness/run/protocol.h"
#include "harness/run/run.h"
#include "harness/store/user_cache.h"
#include "harness/tables/shape_totals.h"
#include "harness/tables/table.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

// The command that goes on with this sweep, with what the config file said; without --force, which
// would throw the rows away.
std::string resume_hint(const Arguments& arguments, const std::string& output) {
  const std::string program = own_program().string();
  std::string text = shell_word(program.empty() ? "attnbench" : program) + " run";
  for (const Option& option : run_verb().options) {
    if (option.name == "config" || option.name == "force" || option.name == "output") continue;
    for (const std::string& value : arguments.all(option.name)) {
      text += " --" + option.name;
      if (!option.value.empty()) text += "=" + shell_word(value);
    }
  }
  for (const std::string& word : arguments.words()) text += " " + shell_word(word);
  return text + " --output=" + shell_word(output);
}

// With more threads than cores, times are longer than with a core for each thread.
void warn_of_shared_cores(const Plan& sweep) {
  int64_t most = 0;
  for (const Cell& cell : sweep.cells) most = std::max(most, cell.key.axes.threads.value_or(1));
  const int cores = hardware_threads();
  if (most <= cores) return;
  const std::optional<double> quota = cpu_quota();
  warn(fmt::format(
      "attnbench: {} threads run on {} core{}{}: times are longer than with a core for each "
      "thread\n",
      most, cores, cores == 1 ? "" : "s",
      quota ? fmt::format(" (the CPU quota is {:g})", *quota) : ""));
}

// A file of the user's cache that cannot be read is no reason to stop, but the person should know.
void warn_of_unknown_noise(const SweepRequest& request, const SweepResult& result) {
  const UserCache kept(request.noise);
  if (!kept.fault().empty())
    warn(fmt::format("'{}' is damaged ({}) and counts as empty; attnbench noise writes it anew\n",
                     request.noise, one_line(kept.fault())));
  const bool has_times = std::any_of(result.rows.begin(), result.rows.end(), [](const Row& row) {
    return row.key.measure == Measure::speed && row.is_ok();
  });
  if (has_times && result.run.noise_floor.empty())
    warn("noise floor of this machine: not known (attnbench noise measures it)\n");
}

// Where the time of a pass goes is asked of passes that are timed.
void require_speed(const SweepRequest& request, const Plan& sweep) {
  if (!request.breakdown) return;
  std::set<std::string> measures;
  for (const Cell& cell : sweep.cells) measures.insert(name_of(cell.key.measure));
  ATTN_CHECK(measures.count(name_of(Measure::speed)),
             "--breakdown is about speed, and this sweep has {} cells; say --measure speed",
             fmt::join(measures, " and "));
}

// Rows that the file held already keep what they have.
void warn_of_no_breakdown(const SweepRequest& request, const SweepResult& result) {
  if (!request.breakdown) return;
  const auto lack = std::count_if(result.rows.begin(), result.rows.end(), [](const Row& row) {
    return row.key.measure == Measure::speed && row.is_ok() && !row.speed().breakdown;
  });
  if (lack > 0)
    warn(
        fmt::format("{} speed rows of the file were measured without --breakdown; --force "
                    "measures them again\n",
                    lack));
}

// Where no cell of a variant can run, whatever its parameters are, the options contradict each
// other or leave out what a stack needs. A part of a sweep may hold the cells that cannot.
void refuse_contradictions(const SweepRequest& request, const Plan& sweep) {
  if (request.shards > 1) return;
  struct Found {
    std::string reason;
    bool is_contradictory = true, has_scope = false;
  };
  std::map<std::string, Found> variants;
  for (const Cell& cell : sweep.cells) {
    Found& found = variants[cell.key.variant.name];
    const auto reason = cell.key.measure == Measure::accuracy
                            ? std::nullopt
                            : why_contradictory(workload_of(cell.key));
    found.is_contradictory = found.is_contradictory && reason;
    found.has_scope = found.has_scope || cell.key.axes.scope;
    if (reason) found.reason = *reason;
  }
  for (const auto& [name, found] : variants)
    if (found.is_contradictory)
      throw_error(fmt::format("no cell of {} can run: {}{}", name, found.reason,
                              !find_variant(name).is_stack() ? ""
                              : found.has_scope
                                  ? "; say --scope model"
                                  : "; say --measure speed --scope model, or -t TASK"));
}

void require_output(const SweepRequest& request, bool quiet) {
  if (request.output == kStdoutPath) return;
  require_writable(request.output, quiet);
  ATTN_CHECK(request.resume || request.force || !std::filesystem::exists(request.output),
             "'{}' exists; --resume continues it, --force starts over", request.output);
}

struct Shown {  // how a run is shown
  std::string format, color, progress;
  bool quiet = false, verbose = false;
  ProgressLine line() const {
    const auto kind = quiet || progress == "none" ? ProgressLine::Kind::none
                      : is_terminal(Stream::err)  ? ProgressLine::Kind::rewritten
                                                  : ProgressLine::Kind::phases;
    return {kind, verbose, wants_color(color, Stream::err)};
  }
};

int nothing_matched() {
  warn("attnbench: nothing matched: no cell has these variants, tasks and axes\n");
  return kNothingMatched;
}

void say_rows(const Arguments& arguments, const SweepRequest& request, const SweepResult& result,
              const Json& protocol, bool quiet) {
  if (!quiet && result.reused > 0)
    warn(fmt::format("{} of {} cells reused\n", result.reused, result.rows.size()));
  if (!quiet)
    warn(fmt::format("rows: {}\nprotocol: {}\n", request.output, protocol_words(protocol)));
  if (!quiet) warn_of_unknown_noise(request, result);
  if (!quiet) warn_of_no_breakdown(request, result);
  if (result.signal)
    warn(fmt::format("interrupted; every finished cell is in the rows. To go on: {}\n",
                     resume_hint(arguments, request.output)));
}

int run_find(const Arguments& arguments, SweepRequest request, const Shown& shown) {
  check_find_options(arguments, request);
  request.find = arguments.get("find");
  CrossingSearch search(request);
  Plan first = search.next();
  if (first.cells.empty()) return nothing_matched();
  refuse_contradictions(request, first);
  require_speed(request, first);
  if (arguments.has("dry-run")) {
    const int code = dry_run(request, first, {shown.format, false, shown.quiet});
    warn(fmt::format("this is the first step of the search; all steps have at most {} cells\n",
                     search.most_cells()));
    return code;
  }
  if (!shown.quiet && !arguments.has("yes") && !agrees_to_long_run(request, first)) return kOk;
  if (!shown.quiet) warn_of_shared_cores(first);
  require_output(request, shown.quiet);
  while (!search.next().cells.empty()) {
    if (!shown.quiet && shown.progress != "none")
      warn(fmt::format("step {}: {} cells\n", search.number(), search.next().cells.size()));
    ProgressLine line = shown.line();
    search.take_step([&](const Progress& now) { line.show(now); });
  }
  const Json protocol = protocol_of(request);
  std::vector<Table> tables = crossing_tables(search.contests(), search.found());
  name_protocols({protocol}, shown.format, tables);
  print(rendered(shown.format, crossing_lines(search.contests(), search.found()), tables,
                 wants_color(shown.color, Stream::out)));
  say_rows(arguments, request, search.result(), protocol, shown.quiet);
  return exit_code(search.result());
}

int run_run(const Arguments& given) {
  Arguments arguments = given;
  if (arguments.has("config")) arguments.merge_config(arguments.get("config"), run_verb());
  SweepRequest request = request_from(arguments);
  const Shown shown{.format = arguments.one_of("format", {"table", "json", "csv", "md"}),
                    .color = arguments.one_of("color", {"auto", "always", "never"}),
                    .progress = arguments.one_of("progress", {"auto", "none"}),
                    .quiet = arguments.has("quiet"),
                    .verbose = arguments.has("verbose")};
  ATTN_CHECK(arguments.has("dry-run") || !arguments.has("pilots"),
             "--pilots goes with --dry-run; a sweep needs no forecast");
  if (arguments.has("find")) return run_find(arguments, request, shown);

  Plan sweep = plan(request);
  if (sweep.cells.empty()) return nothing_matched();
  refuse_contradictions(request, sweep);
  require_speed(request, sweep);
  const Plan grid = sweep;
  const bool is_halved = has_halving(grid);
  if (is_halved) sweep.cells = halved_as_forecast(request, grid.cells);
  if (arguments.has("dry-run"))
    return dry_run(request, sweep, {shown.format, arguments.has("pilots"), shown.quiet});
  if (!shown.quiet) {
    if (const int signal = forecast_on_this_machine(request, sweep))
      return warn("interrupted; nothing was run but pilots\n"), 128 + signal;
    if (!arguments.has("yes") && !agrees_to_long_run(request, sweep)) return kOk;
  }
  if (!shown.quiet) warn_of_shared_cores(sweep);
  require_output(request, shown.quiet);
  SweepResult result;
  {
    ProgressLine line = shown.line();
    const auto report = [&](const Progress& now) { line.show(now); };
    result = is_halved ? run_halving(request, grid, report) : run_sweep(request, sweep, report);
  }
  const Json protocol = protocol_of(request);
  const auto tables = [&](Stream stream) {
    return rendered(shown.format, result.rows, result.run.noise_floor, arguments.has("ledger"),
                    wants_color(shown.color, stream), {protocol});
  };
  if (request.output == kStdoutPath) {  // the rows are the data; tables are for the person
    if (!shown.quiet) warn(tables(Stream::err));
    if (result.signal) warn("interrupted; rows on standard output cannot be resumed\n");
    return exit_code(result);
  }
  print(tables(Stream::out));
  if (shown.format == "table" && request.variants.empty())
    print(shape_totals(request.shapes, result.rows));
  say_rows(arguments, request, result, protocol, shown.quiet);
  return exit_code(result);
}

}  // namespace

Verb run_verb() {
  return {.name = "run",
          .usage = "[FILE.toml | -] [OPTION...]",
          .summary = "runs a sweep and writes rows",
          .options = run_options(),
          .max_words = 1,
          .run = run_run};
}

}  // namespace attn::cli
