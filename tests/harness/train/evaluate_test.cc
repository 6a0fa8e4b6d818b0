// Scores of a model: of examples, of a split, of the training set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "harness/cell/metrics.h"
#include "harness/train/evaluate.h"
#include "harness/train/example_scores.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"

namespace attn::evaluate_test {
namespace {

// The score's standard error against a hand computation over sequences with labels at several
// positions.

ModelConfig labels_per_token() {
  ModelConfig config;
  config.layer = {.variant = &toy::plain(), .width = 4, .heads = 1, .feed_forward = 4};
  config.layers = 1;
  config.vocab = 5;
  config.length = 3;
  config.classes = 3;
  config.per_token = true;
  return config;
}

TEST(Evaluate, CountsScoredPositionsAndTakesSequencesAsTheSample) {
  const Encoder model(labels_per_token());
  Batch batch{.size = 4, .length = 3, .tokens = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}};
  // Labels made from the model's own answers: right in 2 of 3, 1 of 1, 0 of 2 and 0 of 0 scored
  // positions.
  const Tensor logits = model.forward(batch).value();
  const int verdict[12] = {1, 1, 0, 1, -1, -1, 0, 0, -1, -1, -1, -1};  // right, wrong, not scored
  for (int64_t i = 0; i < 12; ++i) {
    const real* row = logits.data() + 3 * i;
    const int32_t answer = static_cast<int32_t>(std::max_element(row, row + 3) - row);
    batch.targets.push_back(verdict[i] < 0 ? kIgnoredLabel
                            : verdict[i]   ? answer
                                           : (answer + 1) % 3);
  }
  const Score score = evaluate(model, {batch});
  EXPECT_DOUBLE_EQ(score.value, 0.5);
  // Residuals right - p · scored: 0.5, 0.5, -1, 0; sqrt(1.5 · 4/3) / 6.
  EXPECT_DOUBLE_EQ(score.standard_error, std::sqrt(1.5 * 4 / 3) / 6);
  EXPECT_TRUE(score.by_distance.empty());
  EXPECT_EQ(score.each, (std::vector<double>{2.0 / 3, 1, 0, 0})) << "of each sequence";
}

// 40 sequences of three labels; sequence b's are at distances b % 10, 100 and (unknown), right when
// b is a multiple of 4, always, and never.
TEST(Evaluate, BinsLabelsByDistanceInAboutEqualNumbers) {
  const Encoder model(labels_per_token());
  std::vector<Batch> batches;
  for (int32_t half = 0; half < 2; ++half) {
    Batch batch{.size = 20, .length = 3, .tokens = std::vector<int32_t>(60, 1 + half)};
    const Tensor logits = model.forward(batch).value();
    for (int32_t i = 0; i < 60; ++i) {
      const int32_t b = half * 20 + i / 3;
      const bool right[] = {b % 4 == 0, true, false};
      const int32_t distance[] = {b % 10, 100, -1};
      const real* row = logits.data() + 3 * i;
      const int32_t answer = static_cast<int32_t>(std::max_element(row, row + 3) - row);
      batch.targets.push_back(right[i % 3] ? answer : (answer + 1) % 3);
      batch.distances.push_back(distance[i % 3]);
    }
    batches.push_back(batch);
  }
  const std::vector<DistanceBin> bins = evaluate(model, batches).by_distance;
  // 80 labels, 16 a fifth: four distances of 4 labels each, then 4 .. 7, then what is left and the
  // 40 labels at 100, which stay together.
  ASSERT_EQ(bins.size(), 3u);
  const int64_t from[] = {0, 4, 8}, to[] = {3, 7, 100}, labels[] = {16, 16, 48};
  const double right[] = {4, 4, 42};  // b = 0 12 20 32, 4 16 24 36 and 8 28
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bins[i].from, from[i]);
    EXPECT_EQ(bins[i].to, to[i]);
    EXPECT_EQ(bins[i].labels, labels[i]);
    EXPECT_DOUBLE_EQ(bins[i].accuracy, right[i] / static_cast<double>(labels[i]));
  }
  // One label a sequence in the first bin: residuals 3/4 four times, -1/4 twelve times.
  EXPECT_DOUBLE_EQ(bins[0].standard_error, std::sqrt((4 * 9 / 16.0 + 12 / 16.0) * 40 / 39) / 16);
}

// Bits against a softmax in long double. Each of 3 sequences has two labels, so that the ratio over
// sequences is the mean of their means.
TEST(EvaluateBits, TheMeanOfLogProbabilitiesInBits) {
  const Encoder model(labels_per_token());
  const Batch batch{.size = 3,
                    .length = 3,
                    .tokens = {1, 2, 3, 4, 1, 2, 3, 4, 1},
                    .targets = {0, 2, -1, 1, -1, 1, -1, 2, 0},
                    .distances = {0, 1, -1, 0, -1, 2, -1, 1, 2}};
  const Tensor logits = model.forward(batch).value();
  std::vector<double> each(3, 0), near;
  double sum = 0;
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] == kIgnoredLabel) continue;
    const real* row = logits.data() + 3 * i;
    long double total = 0;
    for (int c = 0; c < 3; ++c) total += std::exp(static_cast<long double>(row[c]));
    const auto wanted = static_cast<long double>(row[batch.targets[i]]);
    const auto bits = static_cast<double>(-std::log2(std::exp(wanted) / total));
    EXPECT_GT(bits, 0);
    each[i / 3] += bits / 2;
    sum += bits / 6;
    if (batch.distances[i] == 0) near.push_back(bits);
  }
  const Score score = evaluate(model, {batch}, Scoring::bits), expected = mean_score(each);
  EXPECT_NEAR(score.value, sum, 1e-12);
  EXPECT_NEAR(score.value, expected.value, 1e-12);
  EXPECT_NEAR(score.standard_error, expected.standard_error, 1e-12);
  EXPECT_TRUE(score.each.empty()) << "a row holds shares alone";
  ASSERT_EQ(score.by_distance.size(), 3u);
  EXPECT_NEAR(score.by_distance[0].accuracy, (near.at(0) + near.at(1)) / 2, 1e-12);
}

TEST(EvaluateBits, LogitsBeyondTheRangeOfExpAndThoseThatAreNoNumbers) {
  const Encoder model(labels_per_token());
  const Batch batch{.size = 1, .length = 3, .tokens = {1, 2, 3}, .targets = {0, 1, 2}};
  const auto bits = [&] { return evaluate(model, {batch}, Scoring::bits).value; };
  const auto head = [&]() -> Tensor {
    for (const Weight& weight : model.weights())
      if (weight.value.value().size() == 3) return weight.value.value();  // the bias of 3 classes
    throw_error("no bias of the head");
  }();
  head[0] = 5000;
  EXPECT_NEAR(bits(), 2 * 5000 / std::log(2.0) / 3, 10) << "two labels of three are hopeless";
  head[1] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_TRUE(std::isnan(bits()));
}

// Scores of examples, packed for a row and unpacked again; and the digest that names the examples.

std::vector<double> there_and_back(const std::vector<double>& each) {
  const ExampleScores packed = example_scores(each, {});
  return unpacked({packed.count, packed.levels, packed.digest, packed.digits});
}

TEST(ExampleScores, ABitEachWhereAnExampleIsRightOrWrong) {
  const std::vector<double> each = {1, 0, 0, 1, 1, 1};
  const ExampleScores packed = example_scores(each, {});
  EXPECT_EQ(packed.digits, "9c");
  EXPECT_EQ(packed.levels, 2);
  EXPECT_EQ(packed.count, 6);
  EXPECT_EQ(there_and_back(each), each);
  EXPECT_EQ(there_and_back({1, 1, 1, 1}), (std::vector<double>{1, 1, 1, 1}));
}

TEST(ExampleScores, ADigitEachWhereAnExampleHasSeveralLabels) {
  const std::vector<double> each = {1, 0, 0.4, 2.0 / 3};
  EXPECT_EQ(example_scores(each, {}).digits, "f06a");
  const std::vector<double> back = there_and_back(each);
  ASSERT_EQ(back.size(), 4u);
  for (size_t i = 0; i < 4; i++) EXPECT_NEAR(back[i], each[i], 1.0 / 30);
}

TEST(ExampleScores, TextsThatAreNoScoresAreRefused) {
  EXPECT_THROW(unpacked({5, 2, "", "f"}), Error) << "two digits are five examples";
  EXPECT_THROW(unpacked({4, 2, "", "ff"}), Error);
  EXPECT_THROW(unpacked({4, 3, "", "ff"}), Error);
  EXPECT_THROW(unpacked({4, 2, "", "g"}), Error);
  EXPECT_THROW(unpacked({-4, 2, "", ""}), Error);
  EXPECT_THROW(unpacked({INT64_MAX, 2, "", "f"}), Error);
}

TEST(ExampleScores, TheDigestIsOfInputsAndLabels) {
  const Batch batch{.size = 1, .length = 2, .tokens = {1, 2}, .lengths = {2}, .targets = {1}};
  const auto digest = [](const Batch& of) { return example_scores({1}, {of}).digest; };
  EXPECT_EQ(digest(batch), digest(batch));
  EXPECT_EQ(digest(batch).size(), 16u);
  Batch other = batch;
  other.tokens = {2, 1};
  EXPECT_NE(digest(other), digest(batch));
  other = batch;
  other.targets = {0};
  EXPECT_NE(digest(other), digest(batch));
  other = batch;
  other.values = {1.5f};
  EXPECT_NE(digest(other), digest(batch));
}

// Training towards an error, of which less is better: the best step, patience, the target, and a
// validation loss that is not finite.

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
  EXPECT_EQ(result.ended_by, "steps");
  const auto least = std::min_element(
      result.curve.begin(), result.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.validation < b.validation; });
  EXPECT_EQ(result.validation, least->validation);
  EXPECT_EQ(result.best_step, least->step);
  ASSERT_GT(result.best_step, 5);
  ASSERT_LT(result.best_step, 60) << "else the last weights are the best, and nothing is shown";
  rate["target"] = result.validation;
  const TrainResult stopped = trained(task, rate);
  EXPECT_EQ(stopped.ended_by, "target");
  EXPECT_EQ(stopped.steps, result.best_step);
  EXPECT_EQ(stopped.test, result.test);
}

// The next of three tokens that go round, so that a model can tell it: bits fall.
TaskInfo round_of_three() {
  const auto make = [](Split split, int64_t index) {
    Rng random = rng(4, to_string(split), static_cast<uint64_t>(index));
    Example e;
    auto token = static_cast<int32_t>(random.below(3));
    for (int i = 0; i < 6; ++i) {
      e.tokens.push_back(token + 1);
      token = (token + 1) % 3;
      e.target.push_back(token);
      e.distances.push_back(i);
    }
    return e;
  };
  TaskInfo info;
  info.name = "round_of_three";
  info.metric = "bits_per_token";
  info.params = {{"train_examples", 256, ""}};
  info.make = [make](const Params&) {
    const TaskShape shape = {
        .length = 6, .vocab = 4, .classes = 3, .per_token = true, .causal = true, .bits = true};
    return std::make_unique<toy::Made>(shape, make, 256);
  };
  return info;
}

TEST(TrainBits, TheBestStepHasTheFewestAndATargetIsReachedFromAbove) {
  const TaskInfo task = round_of_three();
  const TrainResult result = trained(task, {});
  const auto least = std::min_element(
      result.curve.begin(), result.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.validation < b.validation; });
  EXPECT_EQ(result.validation, least->validation);
  EXPECT_EQ(result.best_step, least->step);
  EXPECT_GT(result.curve.front().validation, 1) << "about log2(3) at first";
  EXPECT_LT(result.test, 0.5);
  EXPECT_FALSE(result.by_example.has_value());
  ASSERT_EQ(result.by_distance.size(), 5u);
  const TrainResult stopped = trained(task, {{"target", 1.0}});
  EXPECT_EQ(stopped.ended_by, "target");
  EXPECT_LE(stopped.validation, 1);
  EXPECT_LT(stopped.steps, result.steps);
}

TEST(TrainError, PatienceCountsValidationsWithoutLess) {
  const TrainResult result =
      trained(mean_of_three(), {{"learning_rate", 0.0}, {"patience", int64_t{4}}});
  EXPECT_EQ(result.ended_by, "patience");
  EXPECT_EQ(result.steps, 5);
}

TEST(TrainError, AnErrorThatIsNotFiniteIsNoTarget) {
  const VariantInfo overflowing = toy::variant<Overflowing>("overflowing");
  const TrainResult result =
      trained(mean_of_three(), {{"validation_examples", kBatch / 2}}, overflowing);
  EXPECT_TRUE(result.diverged);
  EXPECT_EQ(result.ended_by, "divergence");
  EXPECT_EQ(result.steps, 1);
}

}  // namespace
}  // namespace attn::evaluate_test
