// Training runs as row fragments, and their pace; see training_cell.h. A pilot costs its steps
// and two small evaluations, or the shortcuts.
#include "harness/child/training_cell.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/child/equal_layers.h"
#include "harness/train/settings.h"
#include "harness/train/train.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_between(WallClock::time_point begin, WallClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::vector<LearningPoint> learning_curve(const TrainResult& found) {
  std::vector<LearningPoint> points;
  for (const CurvePoint& point : found.curve)
    points.push_back({.step = point.step,
                      .train_loss = finite(point.train_loss),
                      .validation = finite(point.validation),
                      .seconds = point.seconds});
  return points;
}

std::vector<DistanceScore> distance_scores(const std::vector<DistanceBin>& bins) {
  std::vector<DistanceScore> scores;
  for (const DistanceBin& bin : bins)
    scores.push_back({.from = bin.from,
                      .to = bin.to,
                      .labels = bin.labels,
                      .accuracy = bin.accuracy,
                      .standard_error = bin.standard_error});
  return scores;
}

ScoresBySlice slice_scores(const TrainResult& found) {
  ScoresBySlice scores;
  for (const SliceBin& bin : found.by_slice) {
    if (scores.empty() || scores.back().first != bin.name) scores.push_back({bin.name, {}});
    scores.back().second.push_back({.from = bin.from,
                                    .to = bin.to,
                                    .labels = bin.labels,
                                    .examples = bin.sequences,
                                    .test = bin.score,
                                    .standard_error = bin.standard_error});
  }
  return scores;
}

std::optional<ScoresByExample> figures_by_example(const TrainResult& found) {
  if (!found.by_example) return std::nullopt;
  return ScoresByExample{.count = found.by_example->count,
                         .levels = found.by_example->levels,
                         .digest = found.by_example->digest,
                         .scores = found.by_example->digits};
}

std::vector<ScoreAtLength> length_scores(const TrainResult& found) {
  std::vector<ScoreAtLength> scores;
  for (const LengthScore& at : found.by_length) {
    scores.push_back({.factor = at.factor, .length = at.length, .reason = at.reason});
    if (!at.score) continue;
    scores.back().test = at.score->value;
    scores.back().standard_error = at.score->standard_error;
    scores.back().chance = at.chance;
    scores.back().reason.clear();
  }
  return scores;
}

std::vector<ScoreWithParams> params_scores(const TrainResult& found) {
  std::vector<ScoreWithParams> scores;
  for (const ParamsScore& with : found.by_params) {
    scores.push_back({.params = Params::unchecked(with.params), .reason = with.reason});
    if (!with.score) continue;
    scores.back().test = with.score->value;
    scores.back().standard_error = with.score->standard_error;
    scores.back().by_distance = distance_scores(with.score->by_distance);
    scores.back().state_bytes = with.state_bytes;
  }
  return scores;
}

std::vector<ScoreOnTask> task_scores(const TrainResult& found) {
  std::vector<ScoreOnTask> scores;
  for (const TaskScore& on : found.by_task) {
    scores.push_back(
        {.params = Params::unchecked(on.params), .length = on.length, .reason = on.reason});
    if (!on.score) continue;
    scores.back().test = on.score->value;
    scores.back().standard_error = on.score->standard_error;
    scores.back().chance = on.chance;
  }
  return scores;
}

std::optional<DecodingFigures> decoding_figures(const std::optional<Decoding>& found) {
  if (!found) return std::nullopt;
  const auto tokens = static_cast<double>(found->tokens);
  return DecodingFigures{.sequences = found->sequences,
                         .tokens = found->tokens,
                         .tokens_per_s = finite(tokens / found->state_s),
                         .recompute_tokens_per_s = finite(tokens / found->recompute_s),
                         .speedup = finite(found->recompute_s / found->state_s),
                         .same = found->same};
}

// What only tasks with output sequences have.
void add_sequences(const TrainResult& found, AccuracyMetrics& metrics) {
  metrics.token_accuracy = found.token_accuracy;
  metrics.places = found.places;
  metrics.decoding = decoding_figures(found.decoding);
}

// The encoder's layers, at the length of the task.
LayersSpec layers_of(const TrainRequest& request) {
  const TaskShape shape = request.task->build(request.task_params)->shape();
  ModelConfig model = model_config({shape, request.variant, request.variant_params,
                                    request.training, request.seed, request.exact});
  model.layer.max_len = shape.length;
  return {.layer = model.layer, .layers = model.layers, .batch = request.training.integer("batch")};
}

// Gives the request the widths that make its layers equal to those of exact attention, where the
// cell asks for that; their sizes, nullopt where it does not.
std::optional<LayerSizes> widen(TrainRequest& request, Equal equal) {
  if (equal == Equal::width) return std::nullopt;
  const LayerSizes sizes = equal_layers(layers_of(request), equal);
  std::map<std::string, ParamValue> training = request.training.values();
  training["width"] = sizes.width;
  training["feed_forward"] = sizes.feed_forward;
  request.training = Params("training", training_params(), training);
  return sizes;
}

double median_gap(const std::vector<WallClock::time_point>& ticks) {
  std::vector<double> gaps;
  for (size_t i = 1; i < ticks.size(); i++) gaps.push_back(seconds_between(ticks[i - 1], ticks[i]));
  const auto middle = gaps.begin() + std::ssize(gaps) / 2;
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

// With a part of the batch, where the whole takes long; a step's time is proportional to it.
PilotFigures training_pilot(const Request& asked) {
  CellKey key = asked.key.value();
  std::map<std::string, ParamValue> training = key.training.value().values();
  const auto whole = static_cast<double>(key.training->integer("batch")),
             part = static_cast<double>(asked.batch);
  for (const char* examples : {"batch", "validation_examples", "test_examples"})
    training[examples] = asked.batch;
  for (const char* all : {"steps", "eval_every"}) training[all] = asked.steps;
  for (const char* none : {"warmup", "patience", kMimicry}) training[none] = int64_t{0};
  training["stretch"] = int64_t{1};
  key.test_with.clear();
  key.test_on.clear();
  key.training = Params::unchecked(std::move(training));
  TrainRequest request = training_of(key);
  widen(request, equal_of(key));
  request.shortcuts = false;
  std::vector<WallClock::time_point> ticks;
  const TrainResult found =
      train(request, [&](int64_t) { return ticks.push_back(WallClock::now()), true; });
  ATTN_CHECK(ticks.size() > 1, "the training ended at step {} ({})", found.steps, found.ended_by);
  return {.step_s = median_gap(ticks) * whole / part,
          .evaluation_s = found.evaluation_s / static_cast<double>(found.evaluated),
          .shortcuts_s = std::nullopt};
}

PilotFigures shortcuts_pilot(const CellKey& key) {
  const TrainRequest request = training_of(key);
  const auto task = request.task->build(request.task_params);
  const WallClock::time_point begin = WallClock::now();
  task->shortcuts(request.seed, kShortcutExamples, request.training.integer("test_examples"));
  return {.step_s = std::nullopt,
          .evaluation_s = std::nullopt,
          .shortcuts_s = seconds_between(begin, WallClock::now())};
}

}  // namespace

TrainRequest training_of(const CellKey& key) {
  TrainRequest request;
  request.task = &find_task(key.task.value().name);
  request.task_params = key.task->params.values();
  request.variant = &variant_of(key.variant);
  request.variant_params = key.variant.params.values();
  request.training = Params("training", training_params(), key.training.value().values());
  for (const Params& params : key.test_with) request.test_with.push_back(params.values());
  for (const Params& params : key.test_on) request.test_on.push_back(params.values());
  request.seed = static_cast<uint64_t>(key.axes.seed.value());
  request.exact = &exact_reference();
  set_threads(static_cast<int>(key.axes.threads.value()));
  return request;
}

PilotFigures pilot(const Request& asked) {
  return asked.of == PilotOf::shortcuts ? shortcuts_pilot(asked.key.value())
                                        : training_pilot(asked);
}

CellResult accuracy(const CellKey& key) {
  TrainRequest request = training_of(key);
  const std::optional<LayerSizes> sizes = widen(request, equal_of(key));
  const TaskInfo& task = *request.task;
  const TrainResult found = train(request);
  CellResult result{.curve = learning_curve(found)};
  if (found.diverged) {
    result.status = Status::diverged;
    result.reason = fmt::format("the loss was not finite at step {}", found.steps);
    return result;
  }
  const auto examples = static_cast<double>(found.examples);
  AccuracyMetrics metrics{.metric = task.metric,
                          .test = found.test,
                          .test_stderr = found.test_stderr,
                          .by_distance = distance_scores(found.by_distance),
                          .slices = slice_scores(found),
                          .by_example = figures_by_example(found),
                          .validation = found.validation,
                          .chance = found.chance,
                          .shortcuts = {},
                          .lift = std::nullopt,
                          .steps = found.steps,
                          .best_step = found.best_step,
                          .ended_by = found.ended_by,
                          .examples = found.examples,
                          .train_s = found.train_s,
                          .data_wait_share = finite(found.data_wait_s / found.train_s),
                          .examples_per_s = finite(examples / found.train_s),
                          .parameters = found.parameters,
                          .flops = finite(found.flops / examples),
                          .final_train_loss = finite(found.final_train_loss),
                          .control = task.control,
                          .solver = task.solver,
                          .state_bytes = found.state_bytes,
                          .by_length = length_scores(found),
                          .by_params = params_scores(found),
                          .by_task = task_scores(found)};
  const bool error = is_error(task.metric);
  for (const Shortcut& shortcut : found.shortcuts)
    metrics.shortcuts.emplace_back(shortcut.name, shortcut.score);
  const auto* const shortcut = best_shortcut(metrics, error);
  const double best = shortcut ? shortcut->second : found.chance;
  if (task.control.empty()) metrics.lift = error ? best - found.test : found.test - best;
  if (task.metric == "exact_match") add_sequences(found, metrics);
  result.metrics = std::move(metrics);
  result.sizes = sizes;
  return result;
}

}  // namespace attn
