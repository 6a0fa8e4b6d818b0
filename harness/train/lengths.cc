// Finds the multiples of the training length at which a task exists; see lengths.h. A few examples
// of each show whether its sequences are longer.
#include "harness/train/lengths.h"

#include <optional>
#include <utility>

namespace attn {

namespace {

// Why a model trained on `shape` cannot answer at any other length.
std::optional<std::string> bound_to_length(const TrainRequest& request, const TaskShape& shape) {
  if (request.training.text("positions") == "learned")
    return "learned positions end at the training length";
  if (request.variant->traits.fixed_length)
    return fmt::format("{} is built for one length", request.variant->name);
  if (shape.compressed) return "its labels are read from one vector, for the training length";
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
  const TaskShape shape = task.shape();
  Stretch result{factor, shape.length * factor, nullptr};
  if (!task.params().values().count("length")) {
    result.reason = fmt::format("{} has no parameter length", request.task->name);
    return result;
  }
  if (task.source()) {
    result.reason = "its examples are read, not generated";
    return result;
  }
  if (const auto reason = bound_to_length(request, shape)) {
    result.reason = *reason;
    return result;
  }
  try {
    std::unique_ptr<Task> built = request.task->build(longer(task.params(), factor));
    const TaskShape grown = built->shape();
    result.length = grown.length;
    std::optional<std::string> why;
    if (grown.classes != shape.classes || grown.vocab != shape.vocab)
      why = fmt::format("it has {} tokens and {} classes there, {} and {} in training", grown.vocab,
                        grown.classes, shape.vocab, shape.classes);
    if (!why)
      why = why_not_trainable(request.task->name, *built, *request.variant, request.variant_params,
                              request.training);
    if (!why) why = no_longer(task, *built, factor, request.seed);
    if (why)
      result.reason = *why;
    else
      result.task = std::move(built);
  } catch (const Error& error) {  // such as a length beyond the parameter's range
    result.reason = error.what();
  }
  return result;
}

}  // namespace

std::vector<Stretch> stretched(const TrainRequest& request, const Task& task) {
  std::vector<Stretch> all;
  for (int64_t factor = 2; factor <= request.training.integer("stretch"); factor *= 2)
    all.push_back(stretch(request, task, factor));
  return all;
}

}  // namespace attn
