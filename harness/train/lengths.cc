// Which multiples of the training length are defined; see lengths.h. Nothing is generated here.
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
    if (grown.classes != shape.classes || grown.vocab != shape.vocab) {
      result.reason = fmt::format("it has {} tokens and {} classes there, {} and {} in training",
                                  grown.vocab, grown.classes, shape.vocab, shape.classes);
    } else if (const auto reason = why_not_trainable(request.task->name, *built, *request.variant,
                                                     request.variant_params, request.training)) {
      result.reason = *reason;
    } else {
      result.task = std::move(built);
    }
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
