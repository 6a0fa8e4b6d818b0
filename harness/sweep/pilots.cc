// A JSON file of timings by hash, and the children that make them; see pilots.h. A pilot costs a
// process start and some four training steps, once a task its shortcuts.
#include "harness/sweep/pilots.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/parallel.h"
#include "core/simd/isa.h"
#include "harness/measure/environment.h"
#include "harness/store/parse.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/process.h"
#include "harness/sweep/run_line.h"

namespace attn {
namespace {

constexpr double kPilotLimit = 300;  // seconds; a pilot that takes longer is no pilot
constexpr double kPilotStep = 2;     // seconds; where a step takes longer, a part of its batch goes

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
                           "validation_examples", "test_examples", "patience", "target", "stretch"})
    training.erase(name);
  return hash_of({{"machine", machine()},
                  {"variant", key["variant"]},
                  {"task", key["task"]},
                  {"training", training},
                  {"threads", key["axes"]["threads"]},
                  {"source", key["source"]}});
}

std::string hash_for(Pilots::Of what, const Json& key) {
  return what == Pilots::Of::training ? pace(key) : task_pace(key);
}

// How many sequences a step of the pilot takes, by the formula behind the plan's forecast.
int64_t pilot_batch(const Cell& cell) {
  const Json& training = cell.key["training"];
  const int64_t batch = training["batch"];
  const double step = forecast_of(cell.key).seconds / training["steps"].get<double>();
  const double part = std::floor(static_cast<double>(batch) * kPilotStep / step);
  return static_cast<int64_t>(std::clamp(part, 1.0, static_cast<double>(batch)));
}

struct Wanted {
  size_t cell;
  Pilots::Of what;
};

// Each pilot once, though many cells share it.
std::vector<Wanted> lacking(const Plan& plan, const Pilots& pilots) {
  std::vector<Wanted> wanted;
  std::set<std::string> seen;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const Json& key = plan.cells[i].key;
    if (key["measure"] != "accuracy" || !plan.cells[i].skip.empty()) continue;
    for (const Pilots::Of what : {Pilots::Of::training, Pilots::Of::shortcuts})
      if (!pilots.holds(what, key) && seen.insert(hash_for(what, key)).second)
        wanted.push_back({i, what});
  }
  return wanted;
}

}  // namespace

std::string Pilots::default_file() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/attnbench/pilots.json";
  if (home && *home == '/') return std::string(home) + "/.cache/attnbench/pilots.json";
  return {};
}

Pilots::Pilots(std::string file) : file_(std::move(file)), all_(Json::object()) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file_, ignored)) return;
  std::ifstream in(file_);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Parsed read = parse_json(text);
  if (read.fault.empty() && read.value.is_object()) all_ = std::move(read.value);
}

std::optional<Pilot> Pilots::find(const Json& key) const {
  const auto seconds = [&](const std::string& hash, const char* name) -> std::optional<double> {
    if (!all_.contains(hash) || !all_[hash].is_object()) return std::nullopt;
    const Json found = all_[hash].value(name, Json());
    if (!found.is_number() || found.get<double>() < 0) return std::nullopt;
    return found.get<double>();
  };
  const std::string own = pace(key);
  const auto step = seconds(own, "step_s"), evaluation = seconds(own, "evaluation_s");
  if (!step || !evaluation) return std::nullopt;
  return Pilot{*step, *evaluation, seconds(task_pace(key), "shortcuts_s").value_or(0)};
}

bool Pilots::holds(Of what, const Json& key) const {
  if (what == Of::training) return find(key).has_value();
  return all_.contains(task_pace(key));
}

void Pilots::keep(Of what, const Json& key, const Json& reply) {
  Json& kept = all_[hash_for(what, key)] = Json::object();
  for (const char* name : {"step_s", "evaluation_s", "shortcuts_s"})
    if (reply.contains(name)) kept[name] = reply[name];
  if (file_.empty()) return;
  std::error_code fault;  // without a file the next dry run measures again
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), fault);
  const std::string draft = fmt::format("{}.{}", file_, getpid());
  const bool written = static_cast<bool>(std::ofstream(draft) << all_.dump(1) << std::endl);
  if (written) std::filesystem::rename(draft, file_, fault);
  if (!written || fault) std::filesystem::remove(draft, fault);
}

int run_pilots(const SweepRequest& request, Plan& plan,
               const std::function<void(const std::string&)>& report) {
  Pilots pilots(request.pilots);
  const std::vector<Wanted> wanted = lacking(plan, pilots);
  const InterruptGuard guard;
  ChildPool pool;
  const size_t jobs = static_cast<size_t>(jobs_of(request));
  const int64_t memory = request.max_memory_bytes > 0 ? request.max_memory_bytes
                                                      : free_memory() / static_cast<int64_t>(jobs);
  size_t next = 0;
  while (next < wanted.size() || pool.running() > 0) {
    while (next < wanted.size() && pool.running() < jobs) {
      const auto& [index, what] = wanted[next];
      const Cell& cell = plan.cells[index];
      const bool training = what == Pilots::Of::training;
      report(fmt::format("pilot {}/{}: {}", next + 1, wanted.size(),
                         training ? cell.label : "shortcuts of " + plugin_text(cell.key["task"])));
      const Json ask = {{"do", "pilot"},
                        {"of", training ? "training" : "shortcuts"},
                        {"key", cell.key},
                        {"batch", pilot_batch(cell)},
                        {"max_memory_bytes", memory}};
      pool.start(next++, {request.program, {"cell"}, ask.dump(), kPilotLimit});
    }
    const auto ended = pool.wait();
    if (!ended) break;  // interrupted
    const Json reply = reply_of(ended->second, kPilotLimit);
    const auto& [index, what] = wanted[ended->first];
    if (reply["status"] == "ok") pilots.keep(what, plan.cells[index].key, reply);
  }
  if (!wanted.empty())
    for (Cell& cell : plan.cells)
      if (cell.skip.empty()) cell.forecast_s = forecast_of(cell.key, &pilots).seconds;
  return InterruptGuard::signal();
}

double share_of(const Cell& cell, int jobs) {
  const bool pooled = cell.key["measure"] == "accuracy" || cell.key["measure"] == "fidelity";
  return cell.forecast_s / (pooled ? jobs : 1);
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
