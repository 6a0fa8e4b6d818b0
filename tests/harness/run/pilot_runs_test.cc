// Pilots: measured once, kept by what sets the pace, behind the forecasts of accuracy cells.
#include "harness/run/pilot_runs.h"

#include <gtest/gtest.h>

#include <csignal>

#include "harness/plan/forecast.h"
#include "harness/plan/pilots.h"
#include "harness/plan/total_time.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::pilot_runs_test {
namespace {

constexpr const char* kPilot =
    R"(*'"do":"pilot"'*'"of":"shortcuts"'*) echo '{"status":"ok","reason":null,"shortcuts_s":40}';;
*'"do":"pilot"'*) echo '{"status":"ok","reason":null,"step_s":0.5,"evaluation_s":0.25}';;
*'"measure":"accuracy"'*) echo '{"status":"ok","reason":null,"samples":[],"metrics":{"metric":"accuracy","test":0.5,"validation":0.5,"chance":0.1,"shortcuts":{},"lift":0.1,"steps":1,"examples":1,"train_s":1,"examples_per_s":1,"parameters":1}}';;)";

class PilotSweep : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    behave(kPilot);
    request_.axes["measure"] = "accuracy";
    request_.variants = {"full", "linear"};
    request_.tasks = {"mqar[preset=small]"};
    request_.training = "steps=100,eval_every=50,validation_examples=8,test_examples=4,batch=2";
    request_.pilots = folder_ + "/cache/deep/pilots.json";
  }
  Plan piloted() {
    Plan result = plan(request_);
    run_pilots(request_, result, [&](const std::string& line) { lines_.push_back(line); });
    return result;
  }
  int trainings() const {
    int count = 0;
    for (const Json& asked : requests("pilot")) count += asked["of"] == "training";
    return count;
  }
  std::vector<std::string> lines_;
};

// 100 steps of 0.5 s, 2 · 8 + 4 evaluated examples of 0.25 s, shortcuts of 40 s, a start.
constexpr double kForecast = 50 + 5 + 40;

TEST_F(PilotSweep, ForecastIsMeasuredPaceTimesTheWork) {
  const double by_formula = plan(request_).cells.at(0).forecast_s;
  for (const Cell& cell : piloted().cells) EXPECT_NEAR(cell.forecast_s, kForecast, 1);
  EXPECT_LT(by_formula, 60);
  EXPECT_EQ(lines_.size(), 3u) << "two trainings, and the shortcuts";
}

// The test split of 4 examples again, at twice and four times the length: at least as many times
// the work, at most the squares of it.
TEST_F(PilotSweep, LongerTestSequencesCostTheirLength) {
  const std::string plain = request_.training;
  request_.training = plain + ",positions=sinusoidal,stretch=4";
  for (const Cell& cell : piloted().cells) {
    EXPECT_GT(cell.forecast_s, kForecast + 4 * 0.25 * (2 + 4) - 0.5);
    EXPECT_LT(cell.forecast_s, kForecast + 4 * 0.25 * (4 + 16) + 0.5);
  }
  request_.training = plain + ",stretch=4";
  for (const Cell& cell : piloted().cells)
    EXPECT_NEAR(cell.forecast_s, kForecast, 1) << "learned positions have no scores there";
}

TEST_F(PilotSweep, AreKeptAndSharedByWhatDoesNotSetThePace) {
  piloted();
  ASSERT_EQ(trainings(), 2);
  request_.axes["seed"] = "1,2";
  request_.tune = "learning_rate=[1e-3,3e-3]";
  for (const Cell& cell : plan(request_).cells) EXPECT_NEAR(cell.forecast_s, kForecast, 1);
  piloted();
  EXPECT_EQ(trainings(), 2) << "nothing new to measure";
  request_.training += ",width=32,heads=1";
  piloted();
  EXPECT_EQ(trainings(), 4) << "another model is another pace";
  EXPECT_EQ(requests("pilot").size(), 5u) << "the shortcuts know no model";
}

TEST_F(PilotSweep, TheShortcutsOfOtherTestSplitsAreMeasuredToo) {
  request_.training = "steps=100,eval_every=50,validation_examples=8,test_examples=[4,8],batch=2";
  piloted();
  EXPECT_EQ(trainings(), 2);
  EXPECT_EQ(requests("pilot").size(), 4u);
  for (const Cell& cell : plan(request_).cells) EXPECT_GT(cell.forecast_s, kForecast - 1);
}

TEST_F(PilotSweep, FailedShortcutsCostTheForecastNoMoreThanTheirTime) {
  behave(R"(*'"of":"shortcuts"'*) exit 3;;)" + std::string("\n") + kPilot);
  for (const Cell& cell : piloted().cells) EXPECT_NEAR(cell.forecast_s, kForecast - 40, 1);
}

TEST_F(PilotSweep, LongStepsAreMeasuredOnAPartOfTheBatch) {
  request_.tasks = {"mqar[length=512]"};
  request_.training = "steps=10,batch=4096,width=512";
  piloted();
  request_.training = "steps=10,batch=2";
  piloted();
  for (const Json& asked : requests("pilot")) {
    if (asked["of"] != "training") continue;
    const int64_t whole = asked["key"]["training"]["batch"], part = asked["batch"];
    EXPECT_GE(part, 1);
    EXPECT_TRUE(whole == 2 ? part == 2 : part < 200) << part << " of " << whole;
    EXPECT_GT(asked["max_memory_bytes"].get<int64_t>(), 0);
  }
}

// Steps of about half a second together, but no fewer than 4 and no more than 40.
TEST_F(PilotSweep, FastStepsAreMeasuredMoreOften) {
  request_.variants = {"full"};
  const auto steps_of = [&](const std::string& training) {
    request_.training = training + ",validation_examples=8,test_examples=4";
    piloted();
    for (const Json& asked : requests("pilot"))
      EXPECT_EQ(asked.contains("steps"), asked["of"] == "training");
    return requests("pilot").back()["of"] == "training" ? requests("pilot").back()["steps"]
                                                        : requests("pilot").rbegin()[1]["steps"];
  };
  EXPECT_EQ(steps_of("steps=5000,batch=1,width=16,heads=1"), 40);
  EXPECT_EQ(steps_of("steps=5000,batch=512,width=512"), 4);
}

TEST_F(PilotSweep, AnInterruptEndsThemAtOnceAndKeepsWhatIsThere) {
  request_.jobs = 1;
  Plan cells = plan(request_);
  int begun = 0;
  const int signal = run_pilots(request_, cells, [&](const std::string&) {
    if (++begun == 2) raise(SIGINT);
  });
  EXPECT_EQ(signal, SIGINT);
  EXPECT_EQ(begun, 2);
  EXPECT_TRUE(Pilots(request_.pilots).holds(PilotOf::training, cells.cells[0].key));
  EXPECT_EQ(run_pilots(request_, cells, {[](const std::string&) {}}), 0);
}

// The formula is of another machine: what pilots of this one took over it holds for trainings that
// have none, first of all those of the same task. Shards are divided by the formula all the same.
TEST_F(PilotSweep, TrainingsWithoutAPilotGoAtThePaceOfOthers) {
  request_.variants = {"full"};
  const Plan unknown = plan(request_);
  EXPECT_FALSE(unknown.cells.at(0).is_piloted);
  const double pace = (kForecast - 40) / unknown.cells.at(0).forecast_s;
  piloted();
  request_.variants = {"linear"};
  SweepRequest fresh = request_;
  fresh.pilots = "";
  for (const char* task : {"mqar[preset=small]", "mqar[length=128]", "copy[length=32]"}) {
    request_.tasks = fresh.tasks = {task};
    const Cell own = plan(request_).cells.at(0), by_formula = plan(fresh).cells.at(0);
    EXPECT_NEAR(own.forecast_s / by_formula.forecast_s, pace, 0.01 * pace) << task;
    EXPECT_TRUE(own.is_piloted) << "of this machine";
    EXPECT_DOUBLE_EQ(own.formula_s, by_formula.formula_s);
  }
  EXPECT_EQ(trainings(), 1);
}

TEST_F(PilotSweep, FewPilotsAreOfTheLongestTasksThatHaveNone) {
  const std::vector<std::string> four = {"mqar[preset=small]", "copy[length=32]",
                                         "induction[length=32]", "majority[length=32]"};
  request_.variants = {"full", "linear", "truncated"};
  request_.tasks = four;
  const auto few = [&](const std::set<std::string>& held = {}) {
    Plan cells = plan(request_);
    EXPECT_EQ(run_few_pilots(request_, cells, held, [](const std::string&) {}), 0);
    return cells;
  };
  few();
  EXPECT_EQ(trainings(), 0) << "trainings of less than a minute need no forecast";
  request_.training = "steps=100000,batch=32";
  std::set<std::string> all;
  for (const Cell& cell : plan(request_).cells) all.insert(cell.id);
  few(all);
  EXPECT_EQ(trainings(), 0) << "nothing is left to train";
  for (const Cell& cell : few().cells) EXPECT_TRUE(cell.is_piloted) << cell.label;
  EXPECT_EQ(trainings(), 4) << "one for each task";
  EXPECT_EQ(requests("pilot").size(), 4u) << "and no shortcuts";
  few();
  EXPECT_EQ(trainings(), 4) << "what is kept is enough";
}

TEST_F(PilotSweep, AFailedPilotLeavesTheFormula) {
  const double by_formula = plan(request_).cells.at(0).forecast_s;
  behave("*) exit 3;;");
  for (const Cell& cell : piloted().cells) EXPECT_LT(cell.forecast_s, 10 * by_formula);
  EXPECT_DOUBLE_EQ(plan(request_).cells.at(0).forecast_s, by_formula);
}

TEST_F(PilotSweep, ADamagedFileIsMeasuredAnew) {
  piloted();
  for (const char* text : {"", "[1, 2]", "{\"x\": 3", "{\"x\": {\"step_s\": \"fast\"}}"}) {
    std::ofstream(request_.pilots) << text;
    EXPECT_LT(plan(request_).cells.at(0).forecast_s, kForecast - 20) << text;
    EXPECT_NEAR(piloted().cells.at(0).forecast_s, kForecast, 1) << text;
  }
  std::ifstream file(request_.pilots);
  Json all = Json::parse(file);
  for (Json& entry : all) entry = {{"step_s", -5}, {"evaluation_s", -5}, {"shortcuts_s", -5}};
  std::ofstream(request_.pilots) << all;
  EXPECT_GT(plan(request_).cells.at(0).forecast_s, 0);
}

TEST_F(PilotSweep, WhatCannotBeKeptLeavesNothingBehind) {
  std::filesystem::create_directories(request_.pilots);
  EXPECT_NEAR(piloted().cells.at(0).forecast_s, kForecast, 1);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/cache/deep"))
    EXPECT_EQ(entry.path().string(), request_.pilots);
}

TEST_F(PilotSweep, WithoutAFileTheFormulaStands) {
  request_.pilots = "";
  EXPECT_NEAR(piloted().cells.at(0).forecast_s, kForecast, 1) << "measured for this plan";
  EXPECT_LT(plan(request_).cells.at(0).forecast_s, kForecast - 20);
}

TEST_F(PilotSweep, TotalsShareTheCores) {
  request_.jobs = 2;
  const Plan two = piloted();
  EXPECT_NEAR(forecast_total(request_, two), kForecast, 2);
  request_.jobs = 1;
  EXPECT_NEAR(forecast_total(request_, two), 2 * kForecast, 2);
  request_.jobs = 8;
  EXPECT_NEAR(forecast_total(request_, two), kForecast, 2) << "no less than the longest cell";
}

TEST(Timeouts, AreAskedForOrTheProfilesOrTenMinutes) {
  SweepRequest request;
  EXPECT_EQ(timeout_of(request), 600);
  request.profile = "standard";
  EXPECT_EQ(timeout_of(request), 3600);
  request.timeout_s = 5;
  EXPECT_EQ(timeout_of(request), 5);
}

}  // namespace
}  // namespace attn::pilot_runs_test
