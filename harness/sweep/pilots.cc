// Timings by hash, and the children that make them; see pilots.h. A pilot costs a
// process start and some four training steps, once a task its shortcuts.
#include "harness/sweep/pilots.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/parallel.h"
#include "harness/cell/codec.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/process.h"
#include "harness/sweep/python_variants.h"
#include "harness/sweep/run_line.h"
#include "harness/train/train.h"

namespace attn {
namespace {

constexpr double kPilotLimit = 300;  // seconds; a pilot that takes longer is no pilot
constexpr double kPilotStep = 2;     // seconds; where a step takes longer, a part of its batch goes

// Hashes what is left of a key, whose `protocol` and `measure` are the same for all.
std::string hash_of_pace(const CellKey& key) {
  return hash_of({UserCache::machine(), to_json(key)});
}

// All that sets the pace of the shortcuts: not the variant, not the model.
std::string task_pace(const CellKey& key) {
  CellKey pace;
  pace.task = key.task;
  pace.source.task = key.source.task;
  pace.training =
      Params::unchecked({{"test_examples", key.training.value().integer("test_examples")}});
  return hash_of_pace(pace);
}

std::string training_pace(const CellKey& key) {
  CellKey pace = key;
  pace.test_with.clear();
  pace.test_on.clear();
  pace.axes = {.threads = key.axes.threads};
  pace.training = key.training.value().without(
      {"steps", "learning_rate", "warmup", "weight_decay", "clip", "eval_every",
       "validation_examples", "test_examples", "patience", "target", "stretch", kMimicry});
  return hash_of_pace(pace);
}

std::string hash_for(PilotOf what, const CellKey& key) {
  return what == PilotOf::training ? training_pace(key) : task_pace(key);
}

// How many sequences a step of the pilot takes, by the formula behind the plan's forecast.
int64_t pilot_batch(const Cell& cell) {
  const Params& training = cell.key.training.value();
  const int64_t batch = training.integer("batch");
  const double step =
      forecast_of(cell.key).seconds / static_cast<double>(training.integer("steps"));
  const double part = std::floor(static_cast<double>(batch) * kPilotStep / step);
  return static_cast<int64_t>(std::clamp(part, 1.0, static_cast<double>(batch)));
}

bool holds_what(const PilotFigures& figures, PilotOf what) {
  if (what == PilotOf::shortcuts) return figures.shortcuts_s.has_value();
  return figures.step_s && figures.evaluation_s;
}

struct Wanted {
  size_t cell;
  PilotOf what;
};

// Each pilot once, though many cells share it.
std::vector<Wanted> lacking(const Plan& plan, const Pilots& pilots) {
  std::vector<Wanted> wanted;
  std::set<std::string> seen;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const CellKey& key = plan.cells[i].key;
    if (key.measure != Measure::accuracy || !plan.cells[i].skip.empty()) continue;
    for (const PilotOf what : {PilotOf::training, PilotOf::shortcuts})
      if (!pilots.holds(what, key) && seen.insert(hash_for(what, key)).second)
        wanted.push_back({i, what});
  }
  return wanted;
}

}  // namespace

Pilots::Pilots(std::string file) : all_(std::move(file)) {}

std::optional<PilotFigures> Pilots::kept(const std::string& hash) const {
  const Json* found = all_.find(hash);
  if (!found) return std::nullopt;
  try {
    return read_pilot_figures(*found);
  } catch (const Error&) {  // damaged: measured anew
    return std::nullopt;
  }
}

std::optional<Pilot> Pilots::find(const CellKey& key) const {
  const auto found = [&](PilotOf what) {
    return kept(hash_for(what, key)).value_or(PilotFigures{});
  };
  const PilotFigures own = found(PilotOf::training);
  if (own.step_s.value_or(-1) < 0 || own.evaluation_s.value_or(-1) < 0) return std::nullopt;
  const double shortcuts_s = found(PilotOf::shortcuts).shortcuts_s.value_or(0);
  return Pilot{*own.step_s, *own.evaluation_s, std::max(0.0, shortcuts_s)};
}

bool Pilots::holds(PilotOf what, const CellKey& key) const {
  if (what == PilotOf::training) return find(key).has_value();
  return kept(task_pace(key)).has_value();
}

void Pilots::keep(PilotOf what, const CellKey& key, const PilotFigures& figures) {
  all_.keep(hash_for(what, key), to_json(figures));
}

int run_pilots(const SweepRequest& request, Plan& plan,
               const std::function<void(const std::string&)>& report) {
  Pilots pilots(request.pilots);
  const std::vector<Wanted> wanted = lacking(plan, pilots);
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
                        .batch = pilot_batch(cell),
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
  if (!wanted.empty())
    for (Cell& cell : plan.cells)
      if (cell.skip.empty() && cell.key.measure == Measure::accuracy)
        cell.forecast_s = forecast_of(cell.key, &pilots).seconds;
  return InterruptGuard::signal();
}

double share_of(const Cell& cell, int jobs) {
  return cell.forecast_s / (runs_alone(cell.key.measure) ? 1 : jobs);
}

double forecast_total(const SweepRequest& request, const Plan& plan) {
  const int jobs = jobs_of(request);
  double seconds = 0, longest = 0;
  for (const Cell& cell : plan.cells) {
    seconds += share_of(cell, jobs);
    longest = std::max(longest, cell.forecast_s);
  }
  return std::max(seconds, longest);
}

int jobs_of(const SweepRequest& request) {
  return request.jobs > 0 ? request.jobs : hardware_threads();
}

}  // namespace attn
