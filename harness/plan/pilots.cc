// Timings by the hash of what sets the pace; see pilots.h.
#include "harness/plan/pilots.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/cell/codec.h"
#include "harness/plan/forecast.h"
#include "harness/plan/machine_and_build.h"
#include "harness/plan/python_variants.h"
#include "harness/train/schedule.h"
#include "harness/train/train.h"

namespace attn {
namespace {

// Hashes what is left of a key, whose `protocol` and `measure` are the same for all.
std::string hash_of_pace(const CellKey& key) {
  return hash_of({machine_and_build(), to_json(key)});
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
  pace.axes = {.equal = key.axes.equal, .threads = key.axes.threads};
  pace.training = key.training.value().without(
      {"steps", "learning_rate", "warmup", "weight_decay", "clip", "eval_every",
       "validation_examples", "test_examples", "patience", "target", "stretch", kMimicry,
       kMimicryUntil, kSchedule, kDecay, kMinDelta});
  return hash_of_pace(pace);
}

// What the names of this machine's paces begin with; the file may hold those of several machines.
std::string paces_of_machine() { return fmt::format("pace {} ", hash_of({machine_and_build()})); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

std::string pilot_hash(PilotOf what, const CellKey& key) {
  return what == PilotOf::training ? training_pace(key) : task_pace(key);
}

Pilots::Pilots(std::string file) : all_(std::move(file)) { read_paces(); }

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
    return kept(pilot_hash(what, key)).value_or(PilotFigures{});
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
  all_.keep(pilot_hash(what, key), to_json(figures));
  if (what == PilotOf::training) keep_pace(key);
}

void Pilots::keep_pace(const CellKey& key) {
  if (python_variant(key.variant.name) || !find(key)) return;
  const double measured = forecast_of(key, this).seconds - find(key)->shortcuts_s;
  const double pace = measured / forecast_of(key).seconds;
  if (!std::isfinite(pace) || pace <= 0) return;
  all_.keep(fmt::format("{}{} {}", paces_of_machine(), key.task.value().name, training_pace(key)),
            pace);
  read_paces();
}

// The names of one machine stand side by side.
void Pilots::read_paces() {
  paces_.clear();
  const std::string ours = paces_of_machine();
  for (auto it = all_.all().lower_bound(ours); it != all_.all().end(); ++it) {
    if (!it->first.starts_with(ours)) break;
    if (!it->second.is_number() || it->second.get<double>() <= 0) continue;  // damaged
    const std::string task = it->first.substr(ours.size(), it->first.rfind(' ') - ours.size());
    paces_[task].push_back(it->second.get<double>());
  }
}

std::optional<double> Pilots::pace(const std::string& task) const {
  if (const auto own = paces_.find(task); own != paces_.end()) return median(own->second);
  std::vector<double> all;
  for (const auto& [name, paces] : paces_) all.insert(all.end(), paces.begin(), paces.end());
  if (all.empty()) return std::nullopt;
  return median(std::move(all));
}

}  // namespace attn
