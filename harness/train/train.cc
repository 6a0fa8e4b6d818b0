// The training loop: AdamW on a shuffled stream, validation at intervals, and one test score with
// the best weights. Time O(steps · one forward and backward pass). Memory: the weights, two
// moments, the best weights and a tape.
#include "harness/train/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/counters.h"
#include "core/simd/rounded_product.h"
#include "harness/train/batches.h"
#include "harness/train/cached_score.h"
#include "harness/train/followers.h"
#include "harness/train/learner.h"
#include "harness/train/lengths.h"
#include "harness/train/mimicry.h"
#include "harness/train/optimizer.h"
#include "harness/train/rebuilt.h"
#include "harness/train/schedule.h"

namespace attn {

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<Var> learned_weights(const Learner& model) {
  std::vector<Var> learned;
  for (const Weight& weight : model.weights())
    if (weight.learned) learned.push_back(weight.value);
  return learned;
}

// Of a checkpoint: what a training changes.
std::vector<Var> changing_weights(const Learner& model) {
  std::vector<Var> changing;
  for (const Weight& weight : model.weights())
    if (weight.learned || weight.moved) changing.push_back(weight.value);
  return changing;
}

// The weights that scored best so far; at first the initial ones.
class Checkpoint {
 public:
  explicit Checkpoint(std::vector<Var> weights) : weights_(std::move(weights)) {
    const MemoryScope scope(Purpose::weights);
    for (const Var& weight : weights_) kept_.push_back(weight.value().clone());
  }
  void keep() const {
    for (size_t i = 0; i < weights_.size(); ++i) kept_[i].copy_from(weights_[i].value());
  }
  void restore() const {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i].set_value(kept_[i]);
  }

 private:
  std::vector<Var> weights_;
  std::vector<Tensor> kept_;
};

AdamWConfig optimizer_config(const Params& training) {
  AdamWConfig config;
  config.weight_decay = training.number("weight_decay");
  config.clip = training.number("clip");
  return config;
}

// So that a model of `shape` answers `other` too.
void cover(const TaskShape& other, TaskShape& shape) {
  shape.length = std::max(shape.length, other.length);
  shape.outputs = std::max(shape.outputs, other.outputs);
}

// Of the model that answers at the longest length that `stretch` asks for.
LearnerSpec learner_spec(const TrainRequest& request, const Task& task,
                         const std::vector<Stretch>& longer) {
  LearnerSpec spec{task.shape(),     request.variant, request.variant_params,
                   request.training, request.seed,    request.exact};
  for (const Stretch& stretch : longer)
    if (stretch.task) cover(stretch.task->shape(), spec.shape);
  return spec;
}

class Trainer {
 public:
  Trainer(const TrainRequest& request, const Task& task)
      : request_(request),
        settings_(request.training),
        task_(task),
        longer_(stretched(request, task)),
        model_(make_learner(watched(learner_spec(request, task, longer_)))),
        optimizer_(learned_weights(*model_), optimizer_config(settings_)),
        schedule_(settings_),
        best_(changing_weights(*model_)),
        dropout_(rng(request.seed, "dropout")),
        validation_(batches(task_, Split::validation, "validation_examples")) {}

  TrainResult run(const std::function<bool(int64_t)>& tick) {
    if (fit()) loop(tick);
    best_.restore();
    if (result_.best_step == 0) result_.validation = score(validation_).value;
    if (request_.inspect) request_.inspect(*model_);
    test();
    result_.chance = task_.chance();
    if (request_.shortcuts)
      result_.shortcuts =
          task_.shortcuts(request_.seed, kShortcutExamples, settings_.integer("test_examples"));
    result_.examples = result_.steps * settings_.integer("batch");
    for (const Var& weight : learned_weights(*model_)) result_.parameters += weight.value().size();
    return std::move(result_);
  }

 private:
  LearnerSpec watched(LearnerSpec spec) {
    if (mimicry_steps(settings_) > 0)
      spec.watch = [fit = mimicry_.watch(), followers = followers_.watch()](const auto& pass) {
        fit(pass), followers(pass);
      };
    else
      spec.watch = followers_.watch();
    return spec;
  }

  // Before the training, where `mimicry` asks for it; false: diverged.
  bool fit() {
    if (mimicry_steps(settings_) == 0) return true;
    const Stopwatch watch;
    result_.diverged = !mimicry_.run(*model_, task_, settings_, request_.seed);
    result_.mimicry_s = watch.seconds();
    result_.mimicry_losses = mimicry_.losses();
    if (result_.diverged)
      result_.ended_by = "divergence";
    else
      best_.keep();
    return !result_.diverged;
  }

  std::vector<Batch> batches(const Task& task, Split split, const char* count) const {
    return split_batches(task, request_.seed, split,
                         std::min(settings_.integer(count), task.count(split)),
                         settings_.integer("batch"));
  }

  Score score(const std::vector<Batch>& examples) { return score(*model_, examples); }

  Score score(const Learner& model, const std::vector<Batch>& examples) {
    const Stopwatch watch;
    const Score found = model.score(examples);
    result_.evaluation_s += watch.seconds();
    for (const Batch& batch : examples) result_.evaluated += batch.size;
    return found;
  }

  void test() {
    const std::vector<Batch> examples = batches(task_, Split::test, "test_examples");
    const Score found = score(examples);
    result_.test = found.value;
    result_.test_stderr = found.standard_error;
    result_.by_distance = found.by_distance;
    result_.by_slice = found.by_slice;
    if (!found.each.empty()) result_.by_example = example_scores(found.each, examples);
    result_.token_accuracy = found.token_accuracy;
    result_.places = model_->places();
    result_.state_bytes = model_->state_bytes(task_.shape());
    result_.decoding = model_->decoding(examples);
    test_elsewhere(examples);
    if (longer_.empty()) return;
    result_.by_length.push_back({1, task_.shape().length, found, task_.chance()});
    for (const Stretch& stretch : longer_) {
      LengthScore& at = result_.by_length.emplace_back();
      at.factor = stretch.factor;
      at.length = stretch.length;
      at.reason = stretch.reason;
      if (!stretch.task) continue;
      at.score = score(batches(*stretch.task, Split::test, "test_examples"));
      at.chance = stretch.task->chance();
    }
  }

  // The learned weights in models of their own: a training does not know with what else, and on
  // what else, it is scored.
  void test_elsewhere(const std::vector<Batch>& examples) {
    const LearnerSpec own = learner_spec(request_, task_, longer_);
    for (const auto& params : request_.test_with) {
      ParamsScore& with = result_.by_params.emplace_back();
      with.params = params;
      const Rebuilt other = rebuilt(request_, task_, own, *model_, params);
      with.reason = other.reason;
      if (!other.model) continue;
      with.reason = why_no_labels_behind(scored_with(params).prompt, examples).value_or("");
      if (!with.reason.empty()) continue;
      with.score = score(*other.model, examples);
      with.state_bytes = other.model->state_bytes(task_.shape());
    }
    for (const auto& params : request_.test_on) {
      TaskScore& on = result_.by_task.emplace_back();
      on.params = params;
      const OtherTask other = other_task(request_, task_, params);
      on.length = other.length;
      on.reason = other.reason;
      if (!other.task) continue;
      LearnerSpec spec = own;
      cover(other.task->shape(), spec.shape);
      const Rebuilt longer = rebuilt(request_, *other.task, spec, *model_, request_.variant_params);
      on.reason = longer.reason;
      if (!longer.model) continue;
      on.score = score(*longer.model, batches(*other.task, Split::test, "test_examples"));
      on.chance = other.task->chance();
    }
  }

  void loop(const std::function<bool(int64_t)>& tick) {
    const int64_t eval_every = settings_.integer("eval_every");
    TrainingStream stream(task_, request_.seed, settings_.integer("batch"));
    const Stopwatch whole;
    while (result_.ended_by.empty()) {
      const Stopwatch watch;
      const Batch& batch = stream.next();
      result_.data_wait_s += watch.seconds();
      const bool sane = step(batch);
      result_.train_s += watch.seconds();
      if (!sane) {
        result_.diverged = true;
        result_.ended_by = "divergence";
        return;
      }
      ++result_.steps;
      if (tick && !tick(result_.steps))
        throw Interrupted(fmt::format("interrupted at step {}", result_.steps));
      const bool late = request_.time_limit_s > 0 && whole.seconds() > request_.time_limit_s;
      const bool is_end = late || schedule_.is_end(result_.steps);
      if (is_end || result_.steps % eval_every == 0) validate();
      if (late && result_.ended_by.empty()) result_.ended_by = "time";
    }
  }

  // False when a loss or a gradient is not finite; the weights are then as before, but for a loss
  // of mimicry, which comes after the model's own step.
  bool step(const Batch& batch) {
    std::optional<RoundedProducts> rounded;  // of a step; scores are those of float32
    if (rounds_products(settings_)) rounded.emplace();
    const double before = counters().flops;
    const bool goes_on = mimicry_goes_on(settings_);
    followers_.listen(true);
    if (goes_on) mimicry_.listen(true);
    const Var loss = model_->loss(batch, &dropout_);
    followers_.listen(false);
    if (goes_on) mimicry_.listen(false);
    const double value = static_cast<double>(loss.value()[0]);
    if (!std::isfinite(value)) return false;
    loss.backward();
    const double rate = schedule_.rate(result_.steps);
    if (!std::isfinite(optimizer_.step(rate))) return false;
    followers_.follow();
    if (goes_on && !mimicry_.go_on(rate, settings_.number("clip"))) return false;
    result_.flops += counters().flops - before;
    result_.final_train_loss = value;
    loss_sum_ += value;
    ++loss_count_;
    return true;
  }

  void validate() {
    const double score = this->score(validation_).value;
    const bool error = is_error(task_.shape());
    if (!std::isfinite(score)) {
      result_.diverged = true;
      result_.ended_by = "divergence";
      return;
    }
    const auto better = [error](double a, double b) { return error ? a < b : a > b; };
    const double loss = loss_sum_ / static_cast<double>(loss_count_);
    result_.curve.push_back({result_.steps, loss, score, result_.train_s});
    result_.final_train_loss = loss;
    loss_sum_ = 0;
    loss_count_ = 0;
    if (result_.best_step == 0 || better(score, result_.validation)) {
      result_.validation = score;
      result_.best_step = result_.steps;
      best_.keep();
    }
    schedule_.validated(result_.steps, score, error);
    if (result_.ended_by.empty()) result_.ended_by = schedule_.ended_by(result_.steps);
    const double target = settings_.number("target");
    const double wanted = target >= 0 ? target : error ? 0 : 1;
    if (!better(wanted, score)) result_.ended_by = "target";
  }

  const TrainRequest& request_;
  const Params settings_;
  const Task& task_;
  const std::vector<Stretch> longer_;
  MimicryFit mimicry_;
  Followers followers_;
  const std::unique_ptr<Learner> model_;
  AdamW optimizer_;
  Schedule schedule_;
  const Checkpoint best_;
  Rng dropout_;
  const std::vector<Batch> validation_;
  TrainResult result_;
  double loss_sum_ = 0;
  int64_t loss_count_ = 0;
};

}  // namespace

TrainResult train(const TrainRequest& request, const std::function<bool(int64_t step)>& tick) {
  ATTN_CHECK(request.task && request.variant, "training needs a task and a variant");
  const std::unique_ptr<Task> task = request.task->build(request.task_params);
  const auto reason = why_not_trainable(request.task->name, *task, *request.variant,
                                        request.variant_params, request.training);
  ATTN_CHECK(!reason, "{} cannot be trained on {}: {}", request.variant->name, request.task->name,
             *reason);
  return Trainer(request, *task).run(tick);
}

}  // namespace attn
