// Forecasts on paper; see dry_run.h.
#include "harness/cli/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/cli/rendered.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/plan/labels.h"
#include "harness/plan/total_time.h"
#include "harness/run/pilot_runs.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr double kLong = 30 * 60;  // seconds

Json cell_json(const Cell& cell, int jobs) {
  const CellKey& key = cell.key;
  const bool runs = cell.skip.empty();
  Json line = {{"cell", cell.id},
               {"shard", cell.shard},
               {"measure", name_of(key.measure)},
               {"variant", to_json(key.variant)},
               {"task", key.task ? to_json(*key.task) : Json()},
               {"axes", to_json(key.axes)},
               {"training", key.training ? to_json(*key.training) : Json()},
               {"tuned", cell.tuned},
               {"source", to_json(key)["source"]},
               {"forecast_s", runs ? Json(cell.forecast_s) : Json()},
               {"share_s", runs ? Json(share_of(cell, jobs)) : Json()},
               {"forecast_bytes", runs ? Json(cell.forecast_bytes) : Json()},
               {"skipped", runs ? Json() : Json(cell.skip)}};
  if (cell.trial) line["trial"] = cell.trial->round;  // after the first, perhaps another's choice
  return line;
}

void print_lines(const Plan& plan) {
  for (const Cell& cell : plan.cells)
    print(cell.skip.empty() ? fmt::format("{} {} about {}, {}\n", cell.id, cell.label,
                                          human_seconds(cell.forecast_s),
                                          human_bytes(static_cast<double>(cell.forecast_bytes)))
                            : fmt::format("{} {} skipped: {}\n", cell.id, cell.label, cell.skip));
}

void print_cells(const Plan& plan, const std::string& format, int jobs) {
  if (format == "table") return print_lines(plan);
  std::vector<Json> cells;
  for (const Cell& cell : plan.cells) cells.push_back(cell_json(cell, jobs));
  if (format == "json" || format == "csv") return print(rendered(format, cells));
  Table table{
      .title = "cells", .columns = {"cell", "what", "time", "memory"}, .rows = {}, .notes = {}};
  for (const Cell& cell : plan.cells)
    table.rows.push_back(
        cell.skip.empty()
            ? std::vector<std::string>{cell.id, cell.label, human_seconds(cell.forecast_s),
                                       human_bytes(static_cast<double>(cell.forecast_bytes))}
            : std::vector<std::string>{cell.id, cell.label, "skipped", cell.skip});
  print(render_markdown(table));
}

// Ids of the cells that the rows files hold; none where one cannot be read, which run_sweep says.
std::set<std::string> held_cells(const SweepRequest& request) {
  std::set<std::string> ids;
  const auto add = [&](const std::string& file, bool scores_alone) {
    for (const Json& line : read_rows(file, true))
      if (is_cell(line) && (!scores_alone || line["measure"] == name_of(Measure::accuracy)))
        ids.insert(line["cell"]);
  };
  try {
    for (const std::string& file : request.held) add(file, true);
    if (!request.force && request.output != kStdoutPath && std::filesystem::exists(request.output))
      add(request.output, false);
  } catch (const Error&) {
  }
  return ids;
}

// "accuracy on text": what a cell's time is counted under.
std::string part_of(const Cell& cell) {
  const std::string measure = name_of(cell.key.measure);
  return cell.key.task ? measure + " on " + task_label(*cell.key.task) : measure;
}

std::string shorter_text(const Cell& cell) {
  if (!cell.key.task) return "shorter --length, fewer --repetitions";
  return fmt::format("a smaller level (attnbench info {}), or --train with fewer steps",
                     cell.key.task->name);
}

}  // namespace

int dry_run(const SweepRequest& request, Plan& plan, const DryRun& how) {
  const int signal = !how.with_pilots ? 0 : run_pilots(request, plan, [&](const std::string& line) {
    if (!how.quiet) warn(line + "\n");
  });
  if (signal) {
    warn("interrupted; the pilots that were measured are kept\n");
    return 128 + signal;
  }
  print_cells(plan, how.format, jobs_of(request));
  const auto runnable = std::count_if(plan.cells.begin(), plan.cells.end(),
                                      [](const Cell& cell) { return cell.skip.empty(); });
  const bool by_formula = std::any_of(plan.cells.begin(), plan.cells.end(), [](const Cell& cell) {
    return cell.skip.empty() && cell.key.measure == Measure::accuracy && !cell.is_piloted;
  });
  warn(fmt::format("{} cell{}, {} skipped; about {} in all{}; {} was run\n", plan.cells.size(),
                   plan.cells.size() == 1 ? "" : "s", std::ssize(plan.cells) - runnable,
                   human_seconds(forecast_total(request, plan)),
                   by_formula && !how.with_pilots
                       ? ", trainings as on another machine (--pilots measures this one)"
                       : "",
                   how.with_pilots ? "nothing but pilots" : "nothing"));
  return kOk;
}

int forecast_on_this_machine(const SweepRequest& request, Plan& plan) {
  bool told = false;
  return run_few_pilots(request, plan, held_cells(request), [&](const std::string&) {
    if (!std::exchange(told, true)) warn("a few steps of trainings, for the forecast\n");
  });
}

bool agrees_to_long_run(const SweepRequest& request, const Plan& plan) {
  if (forecast_total(request, plan) < kLong) return true;
  struct Part {
    double seconds = 0;
    const Cell* first = nullptr;
  };
  std::map<std::string, Part> parts;
  double total = 0, longest = 0;
  const std::set<std::string> held = held_cells(request);
  const int jobs = jobs_of(request);
  for (const Cell& cell : plan.cells) {
    if (held.count(cell.id)) continue;
    Part& part = parts[part_of(cell)];
    if (!part.first) part.first = &cell;
    part.seconds += share_of(cell, jobs);
    total += share_of(cell, jobs);
    longest = std::max(longest, cell.forecast_s);
  }
  total = std::max(total, longest);
  if (total < kLong) return true;
  const auto& [name, most] = *std::max_element(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  warn(fmt::format(
      "this sweep takes about {}, of which {} {}; {} would cut that "
      "(--dry-run lists every cell)\n",
      human_seconds(total), name, human_seconds(most.seconds), shorter_text(*most.first)));
  if (!is_terminal(Stream::err) || !isatty(STDIN_FILENO)) return true;
  warn("run it? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  const bool agrees = answer == "y" || answer == "Y" || answer == "yes";
  if (!agrees) warn("nothing was run\n");
  return agrees;
}

}  // namespace attn::cli
