// Builds the model and copies the learned weights; see rebuilt.h. Costs the memory of a second
// model.
#include "harness/train/rebuilt.h"

#include <utility>
#include <vector>

#include "harness/train/cached_score.h"

namespace attn {

namespace {

std::vector<Weight> weights_where(const Learner& model, bool Weight::*holds) {
  std::vector<Weight> weights = model.weights();
  std::erase_if(weights, [holds](const Weight& weight) { return !(weight.*holds); });
  return weights;
}

// Why the weights of a training do not fit a model with these; "" where they do.
std::string misfit(const std::vector<Weight>& trained, const std::vector<Weight>& other) {
  if (trained.size() != other.size())
    return fmt::format("it has {} learned weights there, {} in training", other.size(),
                       trained.size());
  for (size_t i = 0; i < trained.size(); ++i) {
    const Weight &from = trained[i], &to = other[i];
    if (from.name != to.name)
      return fmt::format("it has the weight {} there, {} in training", to.name, from.name);
    if (!(from.value.shape() == to.value.shape()))
      return fmt::format("its weight {} is {} there, {} in training", to.name,
                         to.value.shape().str(), from.value.shape().str());
  }
  return "";
}

}  // namespace

std::string copy_learned(const Learner& from, const Learner& to) {
  const auto copy = [](const std::vector<Weight>& trained, const std::vector<Weight>& other) {
    for (size_t i = 0; i < trained.size(); ++i) other[i].value.set_value(trained[i].value.value());
  };
  const std::vector<Weight> trained = weights_where(from, &Weight::learned),
                            other = weights_where(to, &Weight::learned);
  if (std::string reason = misfit(trained, other); !reason.empty()) return reason;
  const std::vector<Weight> moved = weights_where(from, &Weight::moved),
                            drawn = weights_where(to, &Weight::moved);
  if (std::string reason = misfit(moved, drawn); !reason.empty()) return reason;
  copy(trained, other);
  copy(moved, drawn);
  return "";
}

Rebuilt rebuilt(const TrainRequest& request, const Task& task, LearnerSpec spec,
                const Learner& trained, const std::map<std::string, ParamValue>& params) {
  const ScoredWith with = scored_with(params);
  const std::string& name = request.task->name;
  auto why = why_not_trainable(name, task, *request.variant, with.params, request.training,
                               with.prompt > 0);
  if (!why) why = why_no_cached_score(name, task.shape(), *request.variant, with, request.training);
  if (why) return {nullptr, *why};
  spec.variant_params = with.params;
  spec.cache = with.cache;
  spec.prompt = with.prompt;
  try {
    std::unique_ptr<Learner> model = make_learner(spec);
    if (std::string reason = copy_learned(trained, *model); !reason.empty())
      return {nullptr, std::move(reason)};
    return {std::move(model), ""};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace attn
