// Training on a toy task: it learns, repeats itself to the bit, keeps the best weights, scores the
// test split once, and stops.
#include "harness/train/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/memory.h"
#include "core/simd/rounded_product.h"
#include "tests/harness/train/toy.h"

namespace attn::train_test {
namespace {

using Given = std::map<std::string, ParamValue>;

using toy::plain;

const VariantInfo& averaging() {
  static const VariantInfo info = toy::variant<toy::Averaging>("averaging", false);
  return info;
}
const TaskInfo& counting() {
  static const TaskInfo info = toy::counting();
  return info;
}

TrainRequest request(const Given& given = {}, const Given& task_params = {}) {
  Given settings = {{"layers", int64_t{1}},
                    {"width", int64_t{8}},
                    {"feed_forward", int64_t{16}},
                    {"batch", int64_t{16}},
                    {"steps", int64_t{60}},
                    {"learning_rate", 0.01},
                    {"warmup", int64_t{10}},
                    {"eval_every", int64_t{10}},
                    {"validation_examples", int64_t{100}},
                    {"test_examples", int64_t{200}},
                    {"target", 2.0}};
  for (const auto& [name, value] : given) settings[name] = value;
  return {.task = &counting(),
          .task_params = task_params,
          .variant = &plain(),
          .variant_params = {},
          .training = Params("training", training_params(), settings),
          .seed = 4};
}

TEST(Train, LearnsACountingTask) {
  const TrainResult result =
      train(request({{"steps", int64_t{300}}}, {{"train_examples", int64_t{2000}}}));
  EXPECT_FALSE(result.diverged);
  EXPECT_EQ(result.ended_by, "steps");
  EXPECT_GT(result.test, 0.9);
  EXPECT_EQ(result.steps, 300);
  EXPECT_EQ(result.examples, 300 * 16);
  EXPECT_EQ(result.curve.size(), 30u);
  EXPECT_EQ(result.chance, 0.5);
  EXPECT_LT(result.curve.back().train_loss, result.curve.front().train_loss);
  // One label a sequence: the binomial error, with the correction n / (n - 1).
  EXPECT_NEAR(result.test_stderr, std::sqrt(result.test * (1 - result.test) / 199), 1e-9);
}

// The first evidence to the last spans 1 to 5 tokens; without evidence nothing is known.
TEST(Train, ScoresTheTestSplitByDistanceAndSaysHowLongItWaitedForData) {
  const TrainResult known = train(request({}, {{"evidence", true}})), unknown = train(request());
  EXPECT_TRUE(unknown.by_distance.empty());
  ASSERT_GE(known.by_distance.size(), 3u);
  double right = 0, labels = 0;
  for (const DistanceBin& bin : known.by_distance) {
    EXPECT_LE(bin.from, bin.to);
    right += bin.accuracy * static_cast<double>(bin.labels);
    labels += static_cast<double>(bin.labels);
  }
  EXPECT_EQ(labels, 200);
  EXPECT_NEAR(right / labels, known.test, 1e-9);
  EXPECT_GT(known.data_wait_s, 0);
  EXPECT_LT(known.data_wait_s, known.train_s);
}

TEST(Train, OverfitsATinySetOfRandomLabels) {
  const TrainResult result =
      train(request({{"steps", int64_t{300}}, {"width", int64_t{32}}, {"weight_decay", 0.0}},
                    {{"train_examples", int64_t{16}}, {"labels", std::string("random")}}));
  EXPECT_LT(result.final_train_loss, 0.02);
  EXPECT_LT(result.test, 0.65);
}

TEST(Train, RepeatsItselfToTheBit) {
  const Given settings = {{"dropout", 0.2}};
  const TrainResult one = train(request(settings)), two = train(request(settings));
  TrainRequest other = request(settings);
  other.seed = 5;
  const TrainResult three = train(other);
  ASSERT_EQ(one.curve.size(), two.curve.size());
  for (size_t i = 0; i < one.curve.size(); ++i) {
    EXPECT_EQ(one.curve[i].train_loss, two.curve[i].train_loss);
    EXPECT_EQ(one.curve[i].validation, two.curve[i].validation);
    EXPECT_NE(one.curve[i].train_loss, three.curve[i].train_loss);
  }
  EXPECT_EQ(one.test, two.test);
}

// Steps alone are of mixed precision: the first loss differs by the rounding of operands, training
// learns as well, and what is scored afterwards is in float32.
TEST(Train, RoundsProductsOfStepsWhereAsked) {
  const Given wide = {{"width", int64_t{32}},
                      {"feed_forward", int64_t{64}},
                      {"eval_every", int64_t{1}},
                      {"steps", int64_t{1}},
                      {"learning_rate", 0.0}};
  Given rounded = wide;
  rounded[kTrainDtype] = std::string("bfloat16");
  const TrainResult one = train(request(wide)), other = train(request(rounded));
  EXPECT_NE(one.curve[0].train_loss, other.curve[0].train_loss);
  // Three significant digits of each operand, and errors of either sign.
  EXPECT_NEAR(one.curve[0].train_loss, other.curve[0].train_loss, 0.01);
  EXPECT_EQ(one.validation, other.validation) << "weights at a rate of 0, scored in float32";
  EXPECT_EQ(one.test, other.test);
  EXPECT_FALSE(RoundedProducts::active());
  const TrainResult learned = train(request(
      {{"steps", int64_t{300}}, {"width", int64_t{32}}, {kTrainDtype, std::string("bfloat16")}},
      {{"train_examples", int64_t{2000}}}));
  EXPECT_FALSE(learned.diverged);
  EXPECT_GT(learned.test, 0.9);
}

TEST(Train, GivesEveryVariantTheSameData) {
  std::vector<std::vector<int64_t>> asked;
  for (const VariantInfo* variant : {&plain(), &averaging()}) {
    toy::log().asked[0].clear();
    TrainRequest wanted = request();
    wanted.variant = variant;
    train(wanted);
    // The first epoch; the shortcuts are fitted on the same examples later.
    asked.emplace_back(toy::log().asked[0].begin(), toy::log().asked[0].begin() + 256);
  }
  EXPECT_EQ(asked[0], asked[1]);
}

TEST(Train, KeepsTheBestWeightsAndScoresTheTestSplitOnce) {
  // A rate far too high: validation jumps up and down, so that the last weights are not the best.
  const Given settings = {{"eval_every", int64_t{1}}, {"learning_rate", 0.3}};
  toy::log().asked[1].clear();
  toy::log().asked[2].clear();
  const TrainResult result = train(request(settings));
  EXPECT_EQ(toy::log().asked[1].size(), 100u) << "only the validation split stops and chooses";
  EXPECT_EQ(toy::log().asked[2].size(), 2 * 200u) << "once for the model, once for the shortcuts";
  const auto best = std::max_element(
      result.curve.begin(), result.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.validation < b.validation; });
  EXPECT_EQ(result.validation, best->validation);
  EXPECT_EQ(result.best_step, best->step);
  ASSERT_LT(result.best_step, 60);
  // Stopping right there must give the same test score.
  Given stopping = settings;
  stopping["target"] = result.validation;
  const TrainResult stopped = train(request(stopping));
  EXPECT_EQ(stopped.ended_by, "target");
  EXPECT_EQ(stopped.steps, result.best_step);
  EXPECT_EQ(stopped.test, result.test);
}

TEST(Train, StopsWhenValidationNoLongerImproves) {
  const TrainResult result = train(request({{"patience", int64_t{3}}, {"learning_rate", 0.0}}));
  EXPECT_EQ(result.ended_by, "patience");
  EXPECT_EQ(result.steps, 40);
  EXPECT_EQ(result.best_step, 10);
}

TEST(Train, WithoutAFixedLengthItEndsByItself) {
  const Given wsd = {{"schedule", std::string("wsd")}, {"steps", int64_t{300}}};
  const auto trained = [&](Given given) {
    given.insert(wsd.begin(), wsd.end());
    return train(request(given));
  };
  const TrainResult flat = trained({{"patience", int64_t{3}}, {"learning_rate", 0.0}});
  EXPECT_EQ(flat.ended_by, "plateau");
  EXPECT_EQ(flat.steps, 90) << "a best at 10, three validations, then five of the fall";
  EXPECT_EQ(flat.curve.back().step, 90);
  const TrainResult whole = trained({{"patience", int64_t{0}}});
  EXPECT_EQ(whole.ended_by, "steps");
  EXPECT_EQ(whole.steps, 300);
  const TrainResult early = trained({{"patience", int64_t{3}}, {"target", 0.1}});
  EXPECT_EQ(early.ended_by, "target");
  EXPECT_EQ(early.steps, 10);
  const TrainResult cosine = train(request({{"steps", int64_t{300}}}));
  EXPECT_NE(cosine.curve[3].train_loss, whole.curve[3].train_loss) << "the rates differ";
}

TEST(Train, ReportsDivergenceWithoutThrowing) {
  // Each step multiplies the weights by 1 - rate · decay = -9999.
  const TrainResult result = train(request({{"learning_rate", 1e3},
                                            {"weight_decay", 10.0},
                                            {"warmup", int64_t{0}},
                                            {"eval_every", int64_t{1}}}));
  EXPECT_TRUE(result.diverged);
  EXPECT_EQ(result.ended_by, "divergence");
  EXPECT_LT(result.steps, 60);
  EXPECT_TRUE(std::isfinite(result.test));
  EXPECT_TRUE(std::isfinite(result.final_train_loss));
}

TEST(Train, StopsInTimeAndOnDemand) {
  TrainRequest slow = request({{"steps", int64_t{1000000}}});
  slow.time_limit_s = 0.2;
  const TrainResult result = train(slow);
  EXPECT_EQ(result.ended_by, "time");
  EXPECT_LT(result.train_s, 2);
  EXPECT_EQ(result.curve.back().step, result.steps);
  EXPECT_THROW(train(request(), [](int64_t step) { return step < 5; }), Interrupted);
}

TEST(Train, PassesOnWhatTheTaskThrew) {
  toy::log().fail_at = 30;  // beyond what why_not_trainable looks at
  EXPECT_THROW(train(request()), Error);
  toy::log().fail_at = -1;
}

TEST(Train, AsksTheSystemForNoMemoryInItsSteadyState) {
  int64_t warm = 0, late = 0;
  train(request({{"dropout", 0.1}}), [&](int64_t step) {
    if (step == 30) warm = memory_use().system_calls;
    if (step == 60) late = memory_use().system_calls;
    return true;
  });
  EXPECT_EQ(late, warm);
}

TEST(WhyNotTrainable, NamesTheReason) {
  const auto reason = [&](const VariantInfo& variant, const Given& task_params,
                          const Given& given) {
    return why_not_trainable("counting", *counting().build(task_params), variant, {},
                             request(given).training);
  };
  EXPECT_FALSE(reason(plain(), {{"causal", true}}, {}));
  EXPECT_TRUE(reason(averaging(), {{"causal", true}}, {}));
  EXPECT_FALSE(reason(averaging(), {}, {{"pooling", std::string("cls")}}));
  EXPECT_TRUE(reason(plain(), {{"causal", true}}, {{"pooling", std::string("cls")}}));
  EXPECT_TRUE(reason(plain(), {}, {{"heads", int64_t{3}}}));
  VariantInfo unmasked = plain();
  unmasked.traits.padding = false;
  EXPECT_TRUE(reason(unmasked, {}, {}));
  TrainRequest impossible = request();
  impossible.variant = &averaging();
  impossible.task_params = {{"causal", true}};
  EXPECT_THROW(train(impossible), Error);
}

}  // namespace
}  // namespace attn::train_test
