// What a sweep does around its cells: checks that passed, one cell's speed, the time that is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/base/rng.h"
#include "harness/cell/codec.h"
#include "harness/plan/grammar.h"
#include "harness/run/time_left.h"
#include "harness/store/schema.h"
#include "harness/store/user_cache.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::time_left_test {
namespace {

// Contract checks that passed are not repeated, until something that they depend on changes.

class PassedChecks : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "memory"}, {"length", "64"}};
    request_.variants = {"full", "linear"};
    request_.passed_checks = folder_ + "/cache/checks.json";
  }
  // How many subjects a further sweep checks, into a file of its own.
  size_t checked() {
    const size_t before = requests("check").size();
    request_.output = folder_ + "/rows" + std::to_string(sweeps_++) + ".jsonl";
    sweep();
    return requests("check").size() - before;
  }
  int sweeps_ = 0;
};

TEST_F(PassedChecks, AreNotRepeated) {
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 0u);
  request_.axes["length"] = "128,256";
  EXPECT_EQ(checked(), 0u) << "checks have lengths of their own";
  request_.variants.emplace_back("linformer");
  EXPECT_EQ(checked(), 1u);
}

TEST_F(PassedChecks, AreRepeatedForAnotherShapeOrParameter) {
  checked();
  for (const auto& [axis, values] :
       {std::pair{"head_dim", "40"}, {"heads", "3"}, {"causal", "true"}}) {
    request_.axes[axis] = values;
    EXPECT_EQ(checked(), 2u) << axis;
    EXPECT_EQ(checked(), 0u) << axis;
  }
  request_.variants = {"truncated"};
  EXPECT_EQ(checked(), 1u);
  request_.variants = {"truncated[window=7]"};
  EXPECT_EQ(checked(), 1u);
}

TEST_F(PassedChecks, OfSeveralShapesCountForEach) {
  request_.axes["head_dim"] = "16,40";
  EXPECT_EQ(checked(), 2u);
  request_.axes["head_dim"] = "40";
  EXPECT_EQ(checked(), 0u);
  request_.axes["head_dim"] = "40,48";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(requests("check").back().at("shapes").size(), 1u) << "the other one passed";
}

TEST(UserCache, KeepsWhatTwoProgramsFound) {
  const std::string file = testing::TempDir() + "/two_programs.json";
  std::remove(file.c_str());
  UserCache one(file), other(file);
  one.keep("a", 1);
  other.keep("b", 2);
  one.keep("c", 3);
  const UserCache all(file);
  for (const char* hash : {"a", "b", "c"}) EXPECT_NE(all.find(hash), nullptr) << hash;
}

TEST_F(PassedChecks, AreRepeatedByForceAndWithoutAFileOrAfterItIsDamaged) {
  checked();
  request_.force = true;
  EXPECT_EQ(checked(), 2u);
  request_.force = false;
  std::ofstream(request_.passed_checks) << "{\"torn";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 0u);
  request_.passed_checks = "";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 2u);
}

TEST_F(PassedChecks, RedOnesAreNotKept) {
  behave(
      R"(*'"do":"check"'*'"full"'*) echo '{"status":"ok","reason":null,"red":"padding","detail":"0.3"}';;)");
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 1u);
  behave("");
  EXPECT_EQ(checked(), 1u);
  EXPECT_EQ(checked(), 0u);
}

// What `run --breakdown` asks of the visits of a speed cell, and what their row then says.

class SpeedCellBreakdown : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "speed"}, {"length", "64"}, {"repetitions", "3"}};
    request_.variants = {"full"};
  }
};

TEST_F(SpeedCellBreakdown, IsOfAllVisitsTogether) {
  request_.breakdown = true;
  behave(
      R"(*'"breakdown":true'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("marked":{"marked_s":[0.5,0.3],"plain_s":[0.4,0.3],"part_s":{"products":0.6,"masks":0.2},)"
      R"("passes":2,"marks":10}}';;)");
  const Json row = lines(sweep()).at(0);
  ASSERT_EQ(row["status"], "ok") << row["reason"];
  EXPECT_EQ(requests("measure").size(), 3u);
  const Json& breakdown = row["metrics"]["breakdown"];
  EXPECT_EQ(breakdown["passes"], 6) << "2 of each of 3 visits";
  EXPECT_DOUBLE_EQ(breakdown["pass_s"], 0.4);
  EXPECT_DOUBLE_EQ(breakdown["marks"], 5);
  EXPECT_DOUBLE_EQ(breakdown["overhead"], 0.25) << "three pairs of 5:4 and three of 1:1, the upper";
  EXPECT_EQ(breakdown["shares"].size(), 2u);
  EXPECT_DOUBLE_EQ(breakdown["shares"]["products"], 0.75);
  EXPECT_DOUBLE_EQ(breakdown["shares"]["masks"], 0.25);
  EXPECT_DOUBLE_EQ(row["metrics"]["time_s"]["median"], 0.5) << "of the samples alone";
  EXPECT_EQ(schema_fault(row), "");
  EXPECT_EQ(to_json(row_of(row)), row) << "through JSON and back";
}

TEST_F(SpeedCellBreakdown, IsNotThereUnlessAskedFor) {
  const Json row = lines(sweep()).at(0);
  EXPECT_FALSE(row["metrics"].contains("breakdown"));
  for (const Json& request : requests("measure")) EXPECT_FALSE(request.contains("breakdown"));
}

TEST_F(SpeedCellBreakdown, DoesNotChangeTheCell) {
  const std::string plain = plan(request_).cells.at(0).id;
  request_.breakdown = true;
  EXPECT_EQ(plan(request_).cells.at(0).id, plain);
}

TEST_F(SpeedCellBreakdown, TheSchemaNamesAFault) {
  request_.breakdown = true;
  behave(
      R"(*'"breakdown":true'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("marked":{"marked_s":[1],"plain_s":[1],"part_s":{"other":1},"passes":1,"marks":0}}';;)");
  Json row = lines(sweep()).at(0);
  EXPECT_EQ(schema_fault(row), "");
  row["metrics"]["breakdown"]["shares"]["other"] = 1.5;
  EXPECT_EQ(schema_fault(row), "metrics.breakdown.shares.other: 1.5 is above 1");
  row["metrics"]["breakdown"].erase("shares");
  EXPECT_NE(schema_fault(row), "");
}

// The forecast of what is left against its definition, and its cost for the largest plans.

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
}  // namespace attn::time_left_test
