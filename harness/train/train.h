// Training of one variant on one task: the same model, budget and data order for every variant.
// Settings are typed parameters (training_params), so that they are named, checked and recorded
// like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/encoder.h"
#include "harness/train/evaluate.h"
#include "harness/train/learner.h"
#include "tasks/api/task.h"

namespace attn {

// layers, width, heads, feed_forward, norm, positions, pooling, dropout, batch, steps,
// learning_rate, warmup, weight_decay, clip, eval_every, validation_examples, test_examples,
// patience, target (stop early at this validation score), stretch (longest test length)
const std::vector<ParamSpec>& training_params();

// Shortcuts are cheap models: beyond this many training examples they no longer gain.
inline constexpr int64_t kShortcutExamples = 10000;

struct TrainRequest {
  const TaskInfo* task = nullptr;
  std::map<std::string, ParamValue> task_params;
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;
  Params training;
  uint64_t seed = 0;
  const VariantInfo* exact = nullptr;  // `full`, for what the variant cannot be in a decoder
  bool shortcuts = true;               // score them at the end
  double time_limit_s =
      0;  // 0: none; past it training stops as if out of steps, and `stopped_by` says so
};

// The test split at `factor` times the training length.
struct LengthScore {
  int64_t factor = 1, length = 0;
  std::optional<Score> score{};  // nullopt: `reason` says why
  double chance = 0;
  std::string reason{};
};

struct CurvePoint {
  int64_t step = 0;
  double train_loss = 0;  // mean since the last point
  double validation = 0;  // the task's metric
  double seconds = 0;     // training time so far, evaluation excluded
};

struct TrainResult {
  bool diverged = false;  // a loss was not finite; the figures below then stand for the time before
  std::string stopped_by;  // "steps", "target", "patience", "time", "divergence"
  double test = 0;         // scored once, with the weights that were best on validation
  double test_stderr = 0;  // standard error of `test` over its examples
  std::vector<DistanceBin> by_distance;  // of the test split
  std::vector<LengthScore> by_length;    // with the training length; empty: not asked for
  double token_accuracy = 0;             // of output sequences, see Score
  std::vector<std::string> places;       // where the variant stands, see Learner
  std::optional<Decoding> decoding;      // of output sequences, from the test split
  std::optional<int64_t> state_bytes;    // see Learner, at the task's length
  double validation = 0;                 // the best
  int64_t best_step = 0;
  double chance = 0;
  std::vector<Shortcut> shortcuts;
  int64_t steps = 0, examples = 0;
  double train_s = 0;
  double data_wait_s = 0;   // of it, spent waiting for the next batch
  double evaluation_s = 0;  // beside the training
  int64_t evaluated = 0;    // examples, of validation and test together
  int64_t parameters = 0;
  double flops = 0;  // of training, forward and backward, as the kernels counted them
  double final_train_loss = 0;
  std::vector<CurvePoint> curve;
};

// `tick(step)` after every step; returning false stops the run by throwing Interrupted.
class Interrupted : public Error {
 public:
  using Error::Error;
};
TrainResult train(const TrainRequest& request, const std::function<bool(int64_t step)>& tick = {});

// Why this pair cannot be trained (a causal task and a variant that cannot be causal …), or
// nullopt. `name` is the task's.
std::optional<std::string> why_not_trainable(
    const std::string& name, const Task& task, const VariantInfo& variant,
    const std::map<std::string, ParamValue>& variant_params, const Params& training);

}  // namespace attn
