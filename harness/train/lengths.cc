// Builds the task with other parameters, and at multiples of the training length; see lengths.h. A
// few examples of each multiple show whether its sequences are longer.
#include "harness/train/lengths.h"

#include <optional>
#include <tuple>
#include <utility>

namespace attn {

namespace {

// Why a model trained on `shape` cannot answer sequences of the length of `other`.
std::optional<std::string> bound_to_length(const TrainRequest& request, const TaskShape& shape,
                                           const TaskShape& other) {
  if (shape.compressed && other.length != shape.length)
    return "its labels are read from one vector, for the training length";
  if (other.length <= shape.length && other.outputs <= shape.outputs) return std::nullopt;
  if (request.training.text("positions") == "learned")
    return "learned positions end at the training length";
  if (request.variant->traits.fixed_length)
    return fmt::format("{} is built for one length", request.variant->name);
  return std::nullopt;
}

// Why a model trained on `shape` has no answers to `other`, whatever its length.
std::optional<std::string> other_answers(const TaskShape& shape, const TaskShape& other) {
  if (other.classes != shape.classes || other.vocab != shape.vocab)
    return fmt::format("it has {} tokens and {} classes there, {} and {} in training", other.vocab,
                       other.classes, shape.vocab, shape.classes);
  const auto kind = [](const TaskShape& of) {
    return std::tuple(of.channels, of.per_token, of.causal, of.pairs, of.outputs > 0, of.real,
                      of.edges, of.compressed, of.bits);
  };
  if (kind(other) != kind(shape)) return "it asks for another kind of model there";
  return std::nullopt;
}

std::map<std::string, ParamValue> longer(const Params& params, int64_t factor) {
  std::map<std::string, ParamValue> values = params.values();
  for (const char* name : {"length", "min_length"})
    if (values.count(name)) values[name] = params.integer(name) * factor;
  return values;
}

// Of the first test sequences.
double mean_positions(const Task& task, uint64_t seed) {
  constexpr int64_t kLooked = 64;
  double sum = 0;
  for (int64_t i = 0; i < kLooked; ++i)
    sum += static_cast<double>(positions(task.example(seed, Split::test, i), task.shape()));
  return sum / kLooked;
}

// A longer limit alone makes no longer sequences, where a grammar decides how long they are.
std::optional<std::string> no_longer(const Task& task, const Task& grown, int64_t factor,
                                     uint64_t seed) {
  constexpr double kLeast = 0.7;  // of the factor
  const double before = mean_positions(task, seed), after = mean_positions(grown, seed);
  if (after >= kLeast * static_cast<double>(factor) * before) return std::nullopt;
  return fmt::format("its sequences do not grow with the parameter length: mean {:.0f} to {:.0f}",
                     before, after);
}

Stretch stretch(const TrainRequest& request, const Task& task, int64_t factor) {
  Stretch result{factor, task.shape().length * factor, nullptr};
  if (!task.params().values().count("length")) {
    result.reason = fmt::format("{} has no parameter length", request.task->name);
    return result;
  }
  OtherTask grown = other_task(request, task, longer(task.params(), factor));
  if (grown.length > 0) result.length = grown.length;
  result.reason = std::move(grown.reason);
  if (!grown.task) return result;
  if (const auto why = no_longer(task, *grown.task, factor, request.seed))
    result.reason = *why;
  else
    result.task = std::move(grown.task);
  return result;
}

}  // namespace

OtherTask other_task(const TrainRequest& request, const Task& task,
                     const std::map<std::string, ParamValue>& params) {
  if (task.source()) return {.reason = "its examples are read, not generated"};
  OtherTask found;
  try {
    std::unique_ptr<Task> built = request.task->build(params);
    const TaskShape shape = task.shape(), other = built->shape();
    found.length = other.length;
    auto why = bound_to_length(request, shape, other);
    if (!why) why = other_answers(shape, other);
    if (!why)
      why = why_not_trainable(request.task->name, *built, *request.variant, request.variant_params,
                              request.training);
    if (why)
      found.reason = *why;
    else
      found.task = std::move(built);
  } catch (const Error& error) {  // such as a length beyond the parameter's range
    found.reason = error.what();
  }
  return found;
}

std::vector<Stretch> stretched(const TrainRequest& request, const Task& task) {
  std::vector<Stretch> all;
  for (int64_t factor = 2; factor <= request.training.integer("stretch"); factor *= 2)
    all.push_back(stretch(request, task, factor));
  return all;
}

}  // namespace attn
