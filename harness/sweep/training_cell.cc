// Training runs as row fragments, and their pace; see training_cell.h. A pilot costs four training
// steps and two small evaluations, or the shortcuts.
#include "harness/sweep/training_cell.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/sweep/key.h"
#include "harness/train/train.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_between(WallClock::time_point begin, WallClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

Json curve_json(const std::vector<CurvePoint>& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve)
    points.push_back({{"step", point.step},
                      {"train_loss", finite_or_null(point.train_loss)},
                      {"validation", finite_or_null(point.validation)},
                      {"seconds", point.seconds}});
  return points;
}

Json distances_json(const std::vector<DistanceBin>& bins) {
  Json list = Json::array();
  for (const DistanceBin& bin : bins)
    list.push_back({{"from", bin.from},
                    {"to", bin.to},
                    {"labels", bin.labels},
                    {"accuracy", bin.accuracy},
                    {"stderr", bin.standard_error}});
  return list;
}

Json lengths_json(const std::vector<LengthScore>& lengths) {
  Json list = Json::array();
  for (const LengthScore& at : lengths)
    list.push_back({{"factor", at.factor},
                    {"length", at.length},
                    {"test", at.score ? Json(at.score->value) : Json()},
                    {"stderr", at.score ? Json(at.score->standard_error) : Json()},
                    {"chance", at.score ? Json(at.chance) : Json()},
                    {"reason", at.score ? Json() : Json(at.reason)}});
  return list;
}

Json decoding_json(const std::optional<Decoding>& found) {
  if (!found) return nullptr;
  const auto tokens = static_cast<double>(found->tokens);
  return {{"sequences", found->sequences},
          {"tokens", found->tokens},
          {"tokens_per_s", finite_or_null(tokens / found->state_s)},
          {"recompute_tokens_per_s", finite_or_null(tokens / found->recompute_s)},
          {"speedup", finite_or_null(found->recompute_s / found->state_s)},
          {"same", found->same}};
}

// What only some tasks and settings have.
void add_optional(const TrainResult& found, const std::string& metric, Json& metrics) {
  metrics["state_bytes"] = found.state_bytes ? Json(*found.state_bytes) : Json();
  if (!found.by_length.empty()) metrics["by_length"] = lengths_json(found.by_length);
  if (metric != "exact_match") return;  // no output sequences
  metrics["token_accuracy"] = found.token_accuracy;
  metrics["places"] = found.places;
  metrics["decoding"] = decoding_json(found.decoding);
}

TrainRequest training_of(const Json& key) {
  TrainRequest request;
  request.task = &find_task(key["task"]["name"].get<std::string>());
  request.task_params = params_of(key["task"]["params"]);
  request.variant = &find_variant(key["variant"]["name"].get<std::string>());
  request.variant_params = params_of(key["variant"]["params"]);
  request.training = Params("training", training_params(), params_of(key["training"]));
  request.seed = key["axes"]["seed"];
  request.exact = &exact_reference();
  set_threads(key["axes"]["threads"]);
  return request;
}

// With a part of the batch, where the whole takes long; a step's time is proportional to it.
Json training_pilot(const Json& asked) {
  Json key = asked["key"];
  Json& training = key["training"];
  constexpr int64_t kSteps = 4;
  const auto whole = training["batch"].get<double>(), part = asked["batch"].get<double>();
  training["batch"] = training["validation_examples"] = training["test_examples"] = asked["batch"];
  training["steps"] = training["eval_every"] = kSteps;
  training["warmup"] = training["patience"] = 0;
  training["stretch"] = 1;
  TrainRequest request = training_of(key);
  request.shortcuts = false;
  std::vector<WallClock::time_point> ticks;
  const TrainResult found =
      train(request, [&](int64_t) { return ticks.push_back(WallClock::now()), true; });
  ATTN_CHECK(ticks.size() > 1, "the training ended at step {} ({})", found.steps, found.stopped_by);
  double step = seconds_between(ticks[0], ticks[1]);
  for (size_t i = 2; i < ticks.size(); i++)
    step = std::min(step, seconds_between(ticks[i - 1], ticks[i]));
  return {{"step_s", step * whole / part},
          {"evaluation_s", found.evaluation_s / static_cast<double>(found.evaluated)}};
}

Json shortcuts_pilot(const Json& key) {
  const TrainRequest request = training_of(key);
  const auto task = request.task->build(request.task_params);
  const WallClock::time_point begin = WallClock::now();
  task->shortcuts(request.seed, kShortcutExamples, request.training.integer("test_examples"));
  return {{"shortcuts_s", seconds_between(begin, WallClock::now())}};
}

}  // namespace

Json pilot(const Json& asked) {
  return asked["of"] == "shortcuts" ? shortcuts_pilot(asked["key"]) : training_pilot(asked);
}

Json accuracy(const Json& key) {
  const TrainRequest request = training_of(key);
  const TrainResult found = train(request);
  if (found.diverged)
    return {{"status", "diverged"},
            {"reason", fmt::format("the loss was not finite at step {}", found.steps)},
            {"samples", curve_json(found.curve)}};
  const bool error = is_error(request.task->metric);
  Json shortcuts = Json::object();
  double best = found.shortcuts.empty() ? found.chance : found.shortcuts[0].score;
  for (const Shortcut& shortcut : found.shortcuts) {
    shortcuts[shortcut.name] = shortcut.score;
    best = error ? std::min(best, shortcut.score) : std::max(best, shortcut.score);
  }
  const std::string& control = request.task->control;
  const Json lift = control.empty() ? Json(error ? best - found.test : found.test - best) : Json();
  Json row = {
      {"metrics",
       {{"metric", request.task->metric},
        {"test", found.test},
        {"test_stderr", found.test_stderr},
        {"by_distance", distances_json(found.by_distance)},
        {"validation", found.validation},
        {"chance", found.chance},
        {"shortcuts", shortcuts},
        {"lift", lift},
        {"steps", found.steps},
        {"best_step", found.best_step},
        {"stopped_by", found.stopped_by},
        {"examples", found.examples},
        {"train_s", found.train_s},
        {"data_wait_share", finite_or_null(found.data_wait_s / found.train_s)},
        {"examples_per_s", finite_or_null(static_cast<double>(found.examples) / found.train_s)},
        {"parameters", found.parameters},
        {"flops", finite_or_null(found.flops / static_cast<double>(found.examples))},
        {"final_train_loss", finite_or_null(found.final_train_loss)}}},
      {"samples", curve_json(found.curve)}};
  if (!control.empty()) row["metrics"]["control"] = control;
  add_optional(found, request.task->metric, row["metrics"]);
  return row;
}

}  // namespace attn
