// Training towards an error, of which less is better: the best step, patience, the target, and a
// validation loss that is not finite.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/train/train.h"
#include "tests/harness/train/made.h"
#include "tests/harness/train/toy.h"

namespace attn::train_error_test {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr int64_t kBatch = 16;

// Values as they are, but of a batch smaller than those of training, such as a short validation.
class Overflowing final : public Attention {
 public:
  explicit Overflowing(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var&, const Var&, const Var& v, const Mask&) const override {
    return v.dim(0) < kBatch ? scale(v, static_cast<double>(kInfinity)) : v;
  }
  Cost do_cost(const AttentionShape&) const override { return {}; }
};

// The mean of three numbers.
TaskInfo mean_of_three() {
  const auto make = [](Split split, int64_t index) {
    Rng random = rng(3, to_string(split), static_cast<uint64_t>(index));
    Example e;
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
      e.values.push_back(static_cast<float>(random.uniform()));
      sum += e.values.back();
    }
    e.wanted = {sum / 3};
    return e;
  };
  TaskInfo info;
  info.name = "mean_of_three";
  info.metric = "mean_squared_error";
  info.params = {{"train_examples", 256, ""}};
  info.make = [make](const Params&) {
    const TaskShape shape = {.length = 3, .classes = 1, .real = true};
    return std::make_unique<toy::Made>(shape, make, 256);
  };
  return info;
}

TrainResult trained(const TaskInfo& task, const Given& given,
                    const VariantInfo& variant = toy::plain()) {
  Given settings = {{"layers", int64_t{1}},  {"width", int64_t{8}},  {"feed_forward", int64_t{8}},
                    {"batch", kBatch},       {"steps", int64_t{60}}, {"eval_every", int64_t{1}},
                    {"learning_rate", 0.05}, {"warmup", int64_t{5}}};
  for (const auto& [name, value] : given) settings[name] = value;
  return train({.task = &task,
                .task_params = {},
                .variant = &variant,
                .variant_params = {},
                .training = Params("training", training_params(), settings),
                .seed = 2,
                .shortcuts = false});
}

TEST(TrainError, TheBestStepHasTheLeastErrorAndATargetIsReachedFromAbove) {
  const TaskInfo task = mean_of_three();
  Given rate = {{"learning_rate", 0.3}};  // far too high: the error jumps up and down
  const TrainResult result = trained(task, rate);
  EXPECT_EQ(result.stopped_by, "steps");
  const auto least = std::min_element(
      result.curve.begin(), result.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.validation < b.validation; });
  EXPECT_EQ(result.validation, least->validation);
  EXPECT_EQ(result.best_step, least->step);
  ASSERT_GT(result.best_step, 5);
  ASSERT_LT(result.best_step, 60) << "else the last weights are the best, and nothing is shown";
  rate["target"] = result.validation;
  const TrainResult stopped = trained(task, rate);
  EXPECT_EQ(stopped.stopped_by, "target");
  EXPECT_EQ(stopped.steps, result.best_step);
  EXPECT_EQ(stopped.test, result.test);
}

TEST(TrainError, PatienceCountsValidationsWithoutLess) {
  const TrainResult result =
      trained(mean_of_three(), {{"learning_rate", 0.0}, {"patience", int64_t{4}}});
  EXPECT_EQ(result.stopped_by, "patience");
  EXPECT_EQ(result.steps, 5);
}

TEST(TrainError, AnErrorThatIsNotFiniteIsNoTarget) {
  const VariantInfo overflowing = toy::variant<Overflowing>("overflowing");
  const TrainResult result =
      trained(mean_of_three(), {{"validation_examples", kBatch / 2}}, overflowing);
  EXPECT_TRUE(result.diverged);
  EXPECT_EQ(result.stopped_by, "divergence");
  EXPECT_EQ(result.steps, 1);
}

}  // namespace
}  // namespace attn::train_error_test
