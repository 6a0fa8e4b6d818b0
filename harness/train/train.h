// Trains one variant on one task, with the same model, budget and data order for every variant. The
// settings are typed parameters; see training_params().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/encoder.h"
#include "harness/train/evaluate.h"
#include "harness/train/example_scores.h"
#include "harness/train/learner.h"
#include "tasks/api/task.h"

namespace attn {

// layers, width, heads, feed_forward, norm, positions, pooling, dropout, batch, steps,
// learning_rate, schedule, decay, min_delta (see schedule.h), warmup, weight_decay, clip,
// eval_every, validation_examples, test_examples, patience, target (stop early at this validation
// score), mimicry, stretch (longest test length), dtype
const std::vector<ParamSpec>& training_params();
inline constexpr const char* kMimicry = "mimicry";             // steps of harness/train/mimicry.h
inline constexpr const char* kMimicryUntil = "mimicry_until";  // see mimicry_goes_on()
inline constexpr const char* kTrainDtype = "dtype";            // of products of steps

// Whether steps round the operands of products to bfloat16, see core/simd/rounded_product.h; false
// where the setting is not named, as in rows of float32.
bool rounds_products(const Params& training);

// Shortcuts are fitted on at most this many training examples; more do not improve them.
inline constexpr int64_t kShortcutExamples = 10000;

struct TrainRequest {
  const TaskInfo* task = nullptr;
  std::map<std::string, ParamValue> task_params;
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;
  Params training;
  uint64_t seed = 0;
  // Parameters of the variant, types of its cache and prompts (cached_score.h), with which the
  // learned weights are scored too.
  std::vector<std::map<std::string, ParamValue>> test_with;
  // Parameters of the task on whose test split the learned weights are scored too.
  std::vector<std::map<std::string, ParamValue>> test_on;
  const VariantInfo* exact = nullptr;  // exact attention; see EncoderDecoderConfig::exact
  bool shortcuts = true;               // also score the shortcuts of the task
  double time_limit_s = 0;  // training stops after this time, with ended_by "time"; 0: no limit
  // Called once with the weights that were best on validation; empty: nothing is called.
  std::function<void(const Learner& best)> inspect = {};
};

// The score on the test split at `factor` times the training length.
struct LengthScore {
  int64_t factor = 1, length = 0;
  std::optional<Score> score{};  // nullopt: see `reason`
  double chance = 0;
  std::string reason{};
};

// The score on the test split with other parameters of the variant.
struct ParamsScore {
  std::map<std::string, ParamValue> params;
  std::optional<Score> score{};          // nullopt: see `reason`
  std::optional<int64_t> state_bytes{};  // see Learner, at the task's length
  std::string reason{};
};

// The score on the test split of the task with other parameters.
struct TaskScore {
  std::map<std::string, ParamValue> params;
  int64_t length = 0;            // of the longest sequence there; 0: there is no such task
  std::optional<Score> score{};  // nullopt: see `reason`
  double chance = 0;
  std::string reason{};
};

struct CurvePoint {
  int64_t step = 0;
  double train_loss = 0;  // mean since the last point
  double validation = 0;  // in the metric of the task
  double seconds = 0;     // of training so far, without evaluation
};

struct TrainResult {
  bool diverged = false;   // a loss was not finite; the other fields are from before that step
  std::string ended_by;    // "target", "plateau", "steps", "patience", "time", "divergence"
  double test = 0;         // test score with the weights that were best on validation
  double test_stderr = 0;  // standard error of `test` over its examples
  std::vector<DistanceBin> by_distance;     // of the test split
  std::vector<SliceBin> by_slice;           // of the test split
  std::optional<ExampleScores> by_example;  // of the test split; nullopt: the answers are numbers
  std::vector<LengthScore> by_length;  // starts with the training length; empty without `stretch`
  std::vector<ParamsScore> by_params;  // as TrainRequest::test_with
  std::vector<TaskScore> by_task;      // as TrainRequest::test_on
  double token_accuracy = 0;           // of output sequences, see Score
  std::vector<std::string> places;     // see Learner::places
  std::optional<Decoding> decoding;    // of output sequences, from the test split
  std::optional<int64_t> state_bytes;  // see Learner, at the task's length
  double validation = 0;               // the best
  int64_t best_step = 0;
  double chance = 0;
  std::vector<Shortcut> shortcuts;
  int64_t steps = 0, examples = 0;
  double train_s = 0;
  double data_wait_s = 0;              // part of train_s that waits for the next batch
  double evaluation_s = 0;             // not part of train_s
  int64_t evaluated = 0;               // examples of validation and test
  double mimicry_s = 0;                // of the fit before the training, not part of train_s
  std::vector<double> mimicry_losses;  // see MimicryFit; empty: no fit
  int64_t parameters = 0;
  double flops = 0;  // of training, forward and backward, from the counters of the kernels
  double final_train_loss = 0;
  std::vector<CurvePoint> curve;
};

// Trains. Calls tick(step) after every step; if it returns false, train() throws Interrupted.
class Interrupted : public Error {
 public:
  using Error::Error;
};
TrainResult train(const TrainRequest& request, const std::function<bool(int64_t step)>& tick = {});

// The reason why the variant cannot be trained on the task, such as a causal task and a variant
// that cannot be causal; nullopt if it can. `name` is the name of the task. A decoder
// that forgets at the end of a prompt alone has a score only where it is `behind_prompt`.
std::optional<std::string> why_not_trainable(
    const std::string& name, const Task& task, const VariantInfo& variant,
    const std::map<std::string, ParamValue>& variant_params, const Params& training,
    bool behind_prompt = false);

}  // namespace attn
