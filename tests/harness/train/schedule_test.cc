// The learning rate of each step, and when a training ends.
#include "harness/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "harness/train/optimizer.h"
#include "harness/train/train.h"

namespace attn::schedule_test {
namespace {

using Given = std::map<std::string, ParamValue>;

Params settings_with(const Given& given) {
  Given settings = {{"schedule", std::string("wsd")},
                    {"steps", int64_t{1000}},
                    {"warmup", int64_t{10}},
                    {"learning_rate", 0.5},
                    {"eval_every", int64_t{10}},
                    {"patience", int64_t{2}},
                    {"decay", 0.25},
                    {"min_delta", 0.005}};
  for (const auto& [name, value] : given) settings[name] = value;
  return Params("training", training_params(), settings);
}

Schedule schedule(const Given& given = {}) { return Schedule(settings_with(given)); }

TEST(Schedule, WithoutAPlateauTheFallEndsWithTheSteps) {
  const Schedule made = schedule();
  EXPECT_DOUBLE_EQ(made.rate(0), 0.05);
  EXPECT_DOUBLE_EQ(made.rate(8), 0.45);
  EXPECT_DOUBLE_EQ(made.rate(9), 0.5);
  EXPECT_DOUBLE_EQ(made.rate(799), 0.5);
  EXPECT_DOUBLE_EQ(made.rate(800), 0.5) << "800 + a quarter of 800 is 1000";
  EXPECT_DOUBLE_EQ(made.rate(850), 0.25) << "1 - sqrt(50 / 200)";
  EXPECT_DOUBLE_EQ(made.rate(999), 0.5 * (1 - std::sqrt(199.0 / 200)));
  EXPECT_EQ(made.ended_by(999), "");
  EXPECT_EQ(made.ended_by(1000), "steps");
}

TEST(Schedule, APlateauBeginsTheFallAndEndsTheTraining) {
  Schedule made = schedule();
  made.validated(200, 0.5, false);
  made.validated(210, 0.504, false);
  EXPECT_DOUBLE_EQ(made.rate(210), 0.5);
  made.validated(220, 0.505, false);
  EXPECT_DOUBLE_EQ(made.rate(219), 0.5);
  EXPECT_DOUBLE_EQ(made.rate(220), 0.5);
  // A quarter of 220, more than five validations.
  EXPECT_DOUBLE_EQ(made.rate(231), 0.5 * (1 - std::sqrt(11.0 / 55)));
  made.validated(230, 0.55, false);
  EXPECT_FALSE(made.is_end(274));
  EXPECT_EQ(made.ended_by(274), "");
  ASSERT_TRUE(made.is_end(275));
  made.validated(275, 0.55, false);
  EXPECT_EQ(made.ended_by(275), "plateau");
}

// As on a task where a shortcut is learned first: the fall finds more, and there may be more yet.
TEST(Schedule, AFallThatGainsMuchIsFollowedByAConstantRate) {
  Schedule made = schedule();
  for (const int64_t step : {200, 210, 220}) made.validated(step, 0.5, false);
  made.validated(270, 0.56, false);
  EXPECT_LT(made.rate(274), 0.5);
  made.validated(275, 0.56, false);
  EXPECT_EQ(made.ended_by(275), "");
  EXPECT_DOUBLE_EQ(made.rate(275), 0.5);
  EXPECT_DOUBLE_EQ(made.rate(799), 0.5);
  made.validated(280, 0.56, false);
  made.validated(290, 0.56, false);
  EXPECT_DOUBLE_EQ(made.rate(290), 0.5);
  EXPECT_LT(made.rate(291), 0.5) << "no better than what the first fall found";
  made.validated(363, 0.57, false);
  EXPECT_EQ(made.ended_by(363), "plateau") << "290 and a quarter of it";
  Schedule late = schedule();
  for (const int64_t step : {760, 770, 780}) late.validated(step, 0.5, false);
  late.validated(975, 0.6, false);
  EXPECT_LT(late.rate(976), 0.5) << "too late for another: it falls with the steps";
  EXPECT_EQ(late.ended_by(1000), "steps");
}

TEST(Schedule, AFallLastsFiveValidationsAtLeast) {
  Schedule made = schedule();
  for (const int64_t step : {20, 30, 40}) made.validated(step, 0.5, false);
  EXPECT_EQ(made.ended_by(89), "");
  EXPECT_EQ(made.ended_by(90), "plateau");
  EXPECT_DOUBLE_EQ(schedule({{"decay", 0.0}}).rate(949), 0.5);
  EXPECT_LT(schedule({{"decay", 0.0}}).rate(951), 0.5);
  EXPECT_EQ(schedule({{"steps", int64_t{20}}}).ended_by(20), "steps") << "shorter than a fall";
}

TEST(Schedule, AGainCountsFromMinDeltaOn) {
  Schedule made = schedule();
  made.validated(20, 0.5, false);
  made.validated(30, 0.5, false);
  made.validated(40, 0.506, false);  // counts
  made.validated(50, 0.51, false);   // does not, from 0.506
  EXPECT_DOUBLE_EQ(made.rate(60), 0.5);
  made.validated(60, 0.51, false);
  EXPECT_LT(made.rate(61), 0.5);
  Schedule error = schedule();
  error.validated(20, 0.01, true);
  error.validated(30, 0.00996, true);  // less than half a percent better
  EXPECT_DOUBLE_EQ(error.rate(31), 0.5);
  error.validated(40, 0.0099, true);
  error.validated(50, 0.0099, true);
  EXPECT_DOUBLE_EQ(error.rate(51), 0.5);
  error.validated(60, 1.0, true);
  EXPECT_LT(error.rate(61), 0.5);
}

TEST(Schedule, PatienceOfZeroWaitsForEver) {
  Schedule made = schedule({{"patience", int64_t{0}}});
  for (int64_t step = 10; step <= 800; step += 10) made.validated(step, 0.5, false);
  EXPECT_DOUBLE_EQ(made.rate(799), 0.5);
  EXPECT_EQ(made.ended_by(1000), "steps");
}

TEST(Schedule, StepsAreExpectedToEndWithThePlateauAfterTheWarmUp) {
  EXPECT_EQ(expected_steps(settings_with({})), 38) << "(10 + 2 · 10) and a quarter";
  EXPECT_EQ(expected_steps(settings_with({{"target", 0.9}})), 19);
  EXPECT_EQ(expected_steps(settings_with({{"steps", int64_t{20}}})), 20);
  EXPECT_EQ(expected_steps(settings_with({{"patience", int64_t{0}}})), 1000);
  EXPECT_EQ(expected_steps(settings_with({{"schedule", std::string("cosine")}})), 1000);
}

TEST(Schedule, CosineIsAsBefore) {
  Schedule made = schedule({{"schedule", std::string("cosine")}});
  for (const int64_t step : {0, 9, 10, 400, 999})
    EXPECT_EQ(made.rate(step), learning_rate(step, 1000, 10, 0.5));
  made.validated(10, 0.5, false);
  made.validated(20, 0.501, false);  // any gain counts
  made.validated(30, 0.5, false);
  EXPECT_EQ(made.ended_by(30), "");
  made.validated(40, 0.5, false);
  EXPECT_EQ(made.ended_by(40), "patience");
  EXPECT_FALSE(is_wsd(Params::unchecked({{"steps", int64_t{5}}}))) << "a row from before";
}

}  // namespace
}  // namespace attn::schedule_test
