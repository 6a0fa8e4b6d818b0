// A JSON file of timings by hash, and the children that make them; see pilots.h. A pilot costs a
// process start, four training steps, two small evaluations and, once a task, its shortcuts.
#include "harness/sweep/pilots.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "core/kernels/isa.h"
#include "core/parallel.h"
#include "harness/measure/measure.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/process.h"

namespace attn {
namespace {

constexpr double kPilotLimit = 300;  // seconds; a pilot that takes longer is no pilot

const Json& machine() {
  static const Json found = [] {
    Json all = {{"threads", hardware_threads()}, {"kernels", isa()}};
    for (const EnvironmentField& field : environment())
      if (field.name == "cpu_model" || field.name == "flags") all[field.name] = field.value;
    return all;
  }();
  return found;
}

// All that sets the pace of the shortcuts: not the variant, not the model.
std::string task_pace(const Json& key) {
  return hash_of({{"machine", machine()},
                  {"task", key["task"]},
                  {"source", key["source"]["task"]},
                  {"test_examples", key["training"]["test_examples"]}});
}

std::string pace(const Json& key) {
  Json training = key["training"];
  for (const char* name : {"steps", "learning_rate", "warmup", "weight_decay", "clip", "eval_every",
                           "validation_examples", "test_examples", "patience", "target"})
    training.erase(name);
  return hash_of({{"machine", machine()},
                  {"variant", key["variant"]},
                  {"task", key["task"]},
                  {"training", training},
                  {"threads", key["axes"]["threads"]},
                  {"source", key["source"]}});
}

}  // namespace

std::string Pilots::default_file() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/attnbench/pilots.json";
  if (home && *home == '/') return std::string(home) + "/.cache/attnbench/pilots.json";
  return {};
}

Pilots::Pilots(std::string file) : file_(std::move(file)), all_(Json::object()) {
  std::ifstream in(file_);
  if (!in) return;
  Json read = Json::parse(in, nullptr, false);
  if (read.is_object()) all_ = std::move(read);
}

std::optional<Pilot> Pilots::find(const Json& key) const {
  const auto number = [&](const std::string& hash, const char* name) -> std::optional<double> {
    if (!all_.contains(hash) || !all_[hash].is_object()) return std::nullopt;
    const Json& found = all_[hash].value(name, Json());
    return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
  };
  const std::string own = pace(key);
  const auto step = number(own, "step_s"), evaluation = number(own, "evaluation_s"),
             shortcuts = number(task_pace(key), "shortcuts_s");
  if (!step || !evaluation || !shortcuts) return std::nullopt;
  return Pilot{*step, *evaluation, *shortcuts};
}

void Pilots::keep(const Json& key, const Pilot& pilot) {
  all_[pace(key)] = {{"step_s", pilot.step_s}, {"evaluation_s", pilot.evaluation_s}};
  if (pilot.shortcuts_s > 0) all_[task_pace(key)] = {{"shortcuts_s", pilot.shortcuts_s}};
  if (file_.empty()) return;
  std::error_code ignored;  // without a file the next dry run measures again
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  const std::string draft = file_ + ".new";
  if (std::ofstream out(draft); !(out << all_.dump(1) << "\n")) return;
  std::filesystem::rename(draft, file_, ignored);
}

void run_pilots(const SweepRequest& request, Plan& plan,
                const std::function<void(const std::string&)>& report) {
  Pilots pilots(request.pilots);
  std::vector<size_t> wanted;
  std::set<std::string> seen, tasks;
  std::set<size_t> with_shortcuts;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const Json& key = plan.cells[i].key;
    if (key["measure"] != "accuracy" || !plan.cells[i].skip.empty() || pilots.find(key)) continue;
    if (!seen.insert(pace(key)).second) continue;
    if (tasks.insert(task_pace(key)).second) with_shortcuts.insert(i);
    wanted.push_back(i);
  }
  const InterruptGuard guard;
  ChildPool pool;
  const size_t jobs = static_cast<size_t>(request.jobs > 0 ? request.jobs : hardware_threads());
  size_t next = 0, done = 0;
  while (next < wanted.size() || pool.running() > 0) {
    while (next < wanted.size() && pool.running() < jobs) {
      const size_t cell = wanted[next++];
      report(fmt::format("pilot {}/{}: {}", next, wanted.size(), cell_text(plan.cells[cell].key)));
      const Json ask = {{"do", "pilot"},
                        {"key", plan.cells[cell].key},
                        {"shortcuts", with_shortcuts.count(cell) > 0}};
      pool.start(cell, {request.program, {"cell"}, ask.dump(), kPilotLimit});
    }
    const auto ended = pool.wait();
    if (!ended) break;  // interrupted
    done++;
    const Json reply = reply_of(ended->second, kPilotLimit);
    if (reply["status"] == "ok")
      pilots.keep(plan.cells[ended->first].key,
                  {reply["step_s"], reply["evaluation_s"], reply["shortcuts_s"]});
  }
  if (done == 0) return;
  for (Cell& cell : plan.cells)
    if (cell.skip.empty()) cell.forecast_s = forecast_of(cell.key, &pilots).seconds;
}

double forecast_total(const SweepRequest& request, const Plan& plan) {
  const int jobs = request.jobs > 0 ? request.jobs : hardware_threads();
  double seconds = 0;
  for (const Cell& cell : plan.cells) {
    const bool pooled = cell.key["measure"] == "accuracy" || cell.key["measure"] == "fidelity";
    seconds += cell.forecast_s / (pooled ? jobs : 1);
  }
  return seconds;
}

}  // namespace attn
