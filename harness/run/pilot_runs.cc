// The children that make pilots; see pilot_runs.h. A pilot costs a process start and half a second
// of training steps, once a task its shortcuts.
#include "harness/run/pilot_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/costs.h"
#include "harness/plan/forecast.h"
#include "harness/plan/pilots.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/total_time.h"
#include "harness/process/outcome.h"
#include "harness/process/process.h"
#include "harness/run/run_line.h"

namespace attn {
namespace {

constexpr double kPilotLimit = 300;  // seconds; a pilot that takes longer is no pilot
constexpr double kPilotStep = 2;     // seconds; where a step takes longer, a part of its batch goes

// Seconds of a step, by the formula behind the plan's forecast.
double step_by_formula(const CellKey& key) {
  const Forecast forecast = forecast_of(key);
  return forecast.seconds / forecast.steps;
}

// How many sequences a step of the pilot takes.
int64_t pilot_batch(const CellKey& key) {
  const auto batch = static_cast<double>(key.training.value().integer("batch"));
  const double part = std::floor(batch * kPilotStep / step_by_formula(key));
  return static_cast<int64_t>(std::clamp(part, 1.0, batch));
}

// As many steps as take about half a second by the formula, for the first ones are slower than
// those of a whole training: memory is new, and caches are cold.
int64_t pilot_steps(const CellKey& key) {
  constexpr double kLong = 0.5;  // seconds
  return std::clamp<int64_t>(std::llround(kLong / step_by_formula(key)), 4, 40);
}

bool holds_what(const PilotFigures& figures, PilotOf what) {
  if (what == PilotOf::shortcuts) return figures.shortcuts_s.has_value();
  return figures.step_s && figures.evaluation_s;
}

struct Wanted {
  size_t cell;
  PilotOf what;
};

bool trains(const Cell& cell) { return cell.skip.empty() && cell.key.measure == Measure::accuracy; }

// Each pilot once, though many cells share it.
std::vector<Wanted> lacking(const Plan& plan, const Pilots& pilots) {
  std::vector<Wanted> wanted;
  std::set<std::string> seen;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const CellKey& key = plan.cells[i].key;
    if (!trains(plan.cells[i])) continue;
    for (const PilotOf what : {PilotOf::training, PilotOf::shortcuts})
      if (!pilots.holds(what, key) && seen.insert(pilot_hash(what, key)).second)
        wanted.push_back({i, what});
  }
  return wanted;
}

// Of each task the training whose forecast is in the middle; of the tasks those that take longest.
std::vector<Wanted> few_lacking(const Plan& plan, const Pilots& pilots,
                                const std::set<std::string>& held) {
  constexpr double kWorthwhile = 60;  // seconds; a pilot takes one or two
  constexpr size_t kMostTasks = 4;
  struct OfTask {
    double seconds = 0;
    std::vector<size_t> cells;
  };
  std::map<std::string, OfTask> tasks;
  double all = 0;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const Cell& cell = plan.cells[i];
    if (!trains(cell) || held.count(cell.id)) continue;
    all += cell.forecast_s;
    const std::string& task = cell.key.task.value().name;
    if (pilots.holds_pace(task) || pilots.holds(PilotOf::training, cell.key)) continue;
    if (python_variant(cell.key.variant.name)) continue;  // its pace is its own
    tasks[task].seconds += cell.forecast_s;
    tasks[task].cells.push_back(i);
  }
  if (all < kWorthwhile) return {};
  std::vector<OfTask> longest;
  for (auto& [task, cells] : tasks) longest.push_back(std::move(cells));
  std::sort(longest.begin(), longest.end(),
            [](const OfTask& a, const OfTask& b) { return a.seconds > b.seconds; });
  longest.resize(std::min(longest.size(), kMostTasks));
  std::vector<Wanted> wanted;
  for (OfTask& task : longest) {
    const auto middle = task.cells.begin() + std::ssize(task.cells) / 2;
    std::nth_element(task.cells.begin(), middle, task.cells.end(), [&](size_t a, size_t b) {
      return plan.cells[a].forecast_s < plan.cells[b].forecast_s;
    });
    wanted.push_back({*middle, PilotOf::training});
  }
  return wanted;
}

void forecast_anew(const Pilots& pilots, Plan& plan) {
  Costs costs;
  for (Cell& cell : plan.cells) {
    if (!trains(cell)) continue;
    const Forecast forecast = forecast_of(cell.key, &pilots, &costs);
    cell.forecast_s = forecast.seconds;
    cell.is_piloted = forecast.is_measured;
  }
}

int measure(const SweepRequest& request, const std::vector<Wanted>& wanted, Plan& plan,
            const PilotReport& report) {
  Pilots pilots(request.pilots);
  const InterruptGuard guard;
  ChildPool pool;
  const size_t jobs = static_cast<size_t>(jobs_of(request));
  const int64_t memory =
      memory_of_each(static_cast<int64_t>(jobs), request.max_memory_bytes, free_memory());
  size_t next = 0;
  while (next < wanted.size() || pool.running() > 0) {
    while (next < wanted.size() && pool.running() < jobs) {
      const auto& [index, what] = wanted[next];
      const Cell& cell = plan.cells[index];
      const bool training = what == PilotOf::training;
      report(fmt::format(
          "pilot {}/{}: {}", next + 1, wanted.size(),
          training ? cell.label : "shortcuts of " + plugin_text(cell.key.task.value())));
      const Request ask{.what = Asked::pilot,
                        .of = what,
                        .key = cell.key,
                        .batch = pilot_batch(cell.key),
                        .steps = training ? pilot_steps(cell.key) : 0,
                        .max_memory_bytes = memory};
      pool.start(next++, cell_process(request.program, ask, kPilotLimit));
    }
    const auto ended = pool.wait();
    if (!ended) break;  // interrupted
    const Reply reply = outcome_of(ended->second, kPilotLimit);
    const auto& [index, what] = wanted[ended->first];
    const auto figures = found_in(reply, pilot_figures_of);
    if (figures && holds_what(*figures, what)) pilots.keep(what, plan.cells[index].key, *figures);
  }
  if (!wanted.empty()) forecast_anew(pilots, plan);
  return InterruptGuard::signal();
}

}  // namespace

int run_pilots(const SweepRequest& request, Plan& plan, const PilotReport& report) {
  return measure(request, lacking(plan, Pilots(request.pilots)), plan, report);
}

int run_few_pilots(const SweepRequest& request, Plan& plan, const std::set<std::string>& held,
                   const PilotReport& report) {
  return measure(request, few_lacking(plan, Pilots(request.pilots), held), plan, report);
}

}  // namespace attn
