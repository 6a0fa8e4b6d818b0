// A model whose attention keeps what it reads; see captured.h. Costs a training, and memory for the
// queries, keys and values of all layers.
#include "harness/train/captured.h"

#include <memory>
#include <utility>

#include "harness/train/batches.h"
#include "harness/train/settings.h"
#include "harness/train/learner.h"
#include "harness/train/rebuilt.h"

namespace attn {
namespace {

// Exact attention that appends its inputs to `layers`.
class Recorder final : public Attention {
 public:
  Recorder(const AttentionConfig& config, const VariantInfo& exact,
           std::vector<CapturedLayer>& layers)
      : Attention(config), exact_(exact.build(config, {})), layers_(layers) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    layers_.push_back({q.value().clone(), k.value().clone(), v.value().clone(), mask.kv_lengths});
    return exact_->forward(q, k, v, mask);
  }

  std::unique_ptr<Attention> exact_;
  std::vector<CapturedLayer>& layers_;
};

VariantInfo recording(const VariantInfo& exact, std::vector<CapturedLayer>& layers) {
  VariantInfo info = exact;
  info.make = [&exact, &layers](const AttentionConfig& config) {
    return std::make_unique<Recorder>(config, exact, layers);
  };
  return info;
}

bool has_cls(const TaskShape& task, const Params& training) {
  return training.text("pooling") == "cls" && !task.per_token;
}

}  // namespace

CapturedShape captured_shape(const TaskShape& task, const Params& training) {
  const int64_t heads = training.integer("heads");
  return {.length = task.length + (has_cls(task, training) ? 1 : 0),
          .heads = heads,
          .head_dim = training.integer("width") / heads,
          .causal = task.causal};
}

std::optional<std::string> why_not_captured(const std::string& name, const Task& task,
                                            const VariantInfo& exact, const Params& training) {
  if (task.shape().outputs > 0)
    return fmt::format("{} answers with sequences: no inputs are captured from its model", name);
  if (task.shape().edges)
    return fmt::format("{} gives each node its edges: no inputs are captured from its model", name);
  const std::string& positions = training.text("positions");
  if (distances_of(positions_of(positions)) != Distances::none)
    return fmt::format("positions {} are a bias of logits, which queries and keys do not show",
                       positions);
  return why_not_trainable(name, task, exact, {}, training);
}

Captured captured(const TrainRequest& request, bool trained, int64_t examples) {
  const VariantInfo& exact = *request.exact;
  const std::unique_ptr<Task> task = request.task->build(request.task_params);
  Captured found;
  const VariantInfo recorder = recording(exact, found.layers);
  const LearnerSpec spec{task->shape(), &recorder, {}, request.training, request.seed, &exact};
  const std::unique_ptr<Learner> model = make_learner(spec);
  if (trained) {
    TrainRequest training = request;
    training.variant = &exact;
    training.variant_params = {};
    training.test_with.clear();
    training.test_on.clear();
    training.shortcuts = false;
    training.inspect = [&](const Learner& best) {
      const std::string reason = copy_learned(best, *model);
      ATTN_CHECK(reason.empty(), "the trained weights do not fit: {}", reason);
    };
    const TrainResult result = train(training);
    ATTN_CHECK(!result.diverged, "the training with exact attention diverged at step {}",
               result.steps);
    found.test = result.test;
    found.chance = result.chance;
  }
  const NoGrad no_grad;
  found.layers.clear();
  model->loss(batch_of(*task, request.seed, Split::test, 0, examples), nullptr);
  return found;
}

}  // namespace attn
