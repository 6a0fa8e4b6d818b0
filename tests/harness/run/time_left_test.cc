// The forecast of what is left against its definition, and its cost for the largest plans.
#include "harness/run/time_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "core/base/rng.h"
#include "harness/plan/grammar.h"

namespace attn::harness_time_left_test {
namespace {

constexpr int kJobs = 2;

Cell made_cell(Measure measure, const char* task, double forecast_s) {
  Cell cell;
  cell.key.measure = measure;
  if (task) cell.key.task = Plugin{.name = task, .params = {}};
  cell.forecast_s = forecast_s;
  return cell;
}

Plan made_plan(size_t count, Rng& random) {
  Plan plan;
  for (size_t i = 0; i < count; i++)
    plan.cells.push_back(made_cell(kMeasures[random.below(kMeasures.size())], nullptr,
                                   static_cast<double>(random.below(100'000)) * 1e-3));
  return plan;
}

TEST(TimeLeft, IsTheSumOfTheForecastsBeforeAnythingIsDone) {
  Plan plan;
  plan.cells = {made_cell(Measure::speed, nullptr, 30), made_cell(Measure::accuracy, "mqar", 40),
                made_cell(Measure::accuracy, "copy", 60), made_cell(Measure::memory, nullptr, 5)};
  TimeLeft time_left(plan, kJobs);
  EXPECT_DOUBLE_EQ(time_left.seconds_left(), 30 + (40 + 60) / 2 + 5);
  time_left.set_training_pace(3);
  EXPECT_DOUBLE_EQ(time_left.seconds_left(), 30 + 3 * (40 + 60) / 2 + 5);
  time_left.drop(0);
  EXPECT_DOUBLE_EQ(time_left.seconds_left(), 3 * (40 + 60) / 2 + 5);
}

TEST(TimeLeft, CorrectsAMeasureAndATaskByTheirOwnPace) {
  Plan plan;
  for (int i = 0; i < 2; i++)
    for (const char* task : {"mqar", "copy"})
      plan.cells.push_back(made_cell(Measure::accuracy, task, 400));
  plan.cells.push_back(made_cell(Measure::speed, nullptr, 100));
  TimeLeft time_left(plan, kJobs);
  time_left.spend(0, 1, 1200);  // mqar takes three times what the formula says
  time_left.drop(0);
  // The other cell of mqar at its pace, those of copy at that of the measure, speed as forecast.
  EXPECT_NEAR(time_left.seconds_left(), 3 * 200 + 3 * 400 + 100, 0.02 * 1900);
  time_left.spend(1, 1, 200);  // copy takes half of it
  time_left.drop(1);
  EXPECT_NEAR(time_left.seconds_left(), 3 * 200 + 0.5 * 200 + 100, 0.02 * 800);
}

TEST(TimeLeft, AVariantThatStopsEarlyDoesSoWithEverySeed) {
  Plan plan;
  for (int seed = 0; seed < 3; seed++)
    for (const char* variant : {"full", "linear"}) {
      plan.cells.push_back(made_cell(Measure::accuracy, "copy", 400));
      plan.cells.back().key.variant.name = variant;
    }
  TimeLeft time_left(plan, kJobs);
  time_left.spend(0, 1, 50);  // full is perfect after an eighth of its steps
  time_left.drop(0);
  time_left.spend(1, 1, 400);
  time_left.drop(1);
  EXPECT_NEAR(time_left.seconds_left(), 2 * 200 / 8.0 + 2 * 200, 0.03 * 450);
}

TEST(TimeLeft, CountsAVisitOfACellBeforeTheCellIsDone) {
  Plan plan;
  plan.cells = {made_cell(Measure::speed, nullptr, 90), made_cell(Measure::speed, nullptr, 90)};
  TimeLeft time_left(plan, kJobs);
  for (const size_t cell : {0, 1}) time_left.spend(cell, 1.0 / 3, 60);
  EXPECT_NEAR(time_left.seconds_left(), 2 * 120, 5);  // two visits of each are left, at that pace
  for (const size_t cell : {0, 1}) time_left.drop(cell);
  EXPECT_EQ(time_left.seconds_left(), 0);
}

// A sum over all cells at each of them would take 20,000 times longer.
TEST(TimeLeft, CostsNoMoreInALargePlan) {
  Rng random = rng(4, "remaining");
  const auto seconds_for = [&](size_t count) {
    const Plan plan = made_plan(count, random);
    TimeLeft time_left(plan, kJobs);
    const auto start = std::chrono::steady_clock::now();
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
      time_left.spend(i, 1, 1);
      time_left.drop(i);
      sum += time_left.seconds_left();
    }
    EXPECT_GE(sum, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_LT(seconds_for(kMostCells), 0.5);
}

}  // namespace
}  // namespace attn::harness_time_left_test
