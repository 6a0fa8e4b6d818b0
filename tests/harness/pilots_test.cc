// Pilots: measured once, kept by what sets the pace, behind the forecasts of accuracy cells; and
// the tuning grid through plan and rows.
#include "harness/sweep/pilots.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/sweep/forecast.h"
#include "tests/harness/fake_cell.h"

namespace attn {
namespace {

constexpr const char* kPilot =
    R"(*'"do":"pilot"'*'"shortcuts":true'*) echo '{"status":"ok","reason":null,"step_s":0.5,"evaluation_s":0.25,"shortcuts_s":40}';;
*'"do":"pilot"'*) echo '{"status":"ok","reason":null,"step_s":0.5,"evaluation_s":0.25,"shortcuts_s":0}';;
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
  std::vector<std::string> lines_;
};

// 100 steps of 0.5 s, 2 · 8 + 4 evaluated examples of 0.25 s, shortcuts of 40 s, a start.
constexpr double kForecast = 50 + 5 + 40;

TEST_F(PilotSweep, ForecastIsMeasuredPaceTimesTheWork) {
  const double by_formula = plan(request_).cells.at(0).forecast_s;
  for (const Cell& cell : piloted().cells) EXPECT_NEAR(cell.forecast_s, kForecast, 1);
  EXPECT_LT(by_formula, 60);
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(PilotSweep, AreKeptAndSharedByWhatDoesNotSetThePace) {
  piloted();
  ASSERT_EQ(requests("pilot").size(), 2u);
  request_.axes["seed"] = "1,2";
  request_.tune = "learning_rate=[1e-3,3e-3]";
  for (const Cell& cell : plan(request_).cells) EXPECT_NEAR(cell.forecast_s, kForecast, 1);
  piloted();
  EXPECT_EQ(requests("pilot").size(), 2u) << "nothing new to measure";
  request_.training += ",width=32,heads=1";
  piloted();
  EXPECT_EQ(requests("pilot").size(), 4u) << "another model is another pace";
}

TEST_F(PilotSweep, ShortcutsAreMeasuredOnceATask) {
  piloted();
  int with = 0;
  for (const Json& asked : requests("pilot")) with += asked["shortcuts"].get<bool>();
  EXPECT_EQ(with, 1);
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
}

using TunedSweep = PilotSweep;

TEST_F(TunedSweep, EveryChoiceIsACellAndARowSaysWhatWasTuned) {
  request_.tune = "learning_rate=[1e-3,3e-3],dropout=[0,0.1]";
  const SweepResult result = sweep();
  ASSERT_EQ(result.rows.size(), 2u * 4);
  std::set<double> rates;
  for (const Json& row : result.rows) {
    EXPECT_EQ(row["tuned"], (Json{"learning_rate", "dropout"}));
    rates.insert(row["training"]["learning_rate"].get<double>());
  }
  EXPECT_EQ(rates, (std::set<double>{1e-3, 3e-3}));
  EXPECT_EQ(result.run["config"]["sweeps"][0]["tuned"], (Json{"learning_rate", "dropout"}));
}

TEST_F(TunedSweep, ASettingFixedByHandIsNotTuned) {
  request_.profile = "standard";
  request_.tasks = {"mqar"};
  request_.axes["seed"] = "0";
  EXPECT_EQ(plan(request_).cells.size(), 2u * 2);
  request_.training = "learning_rate=5e-4";
  const Plan fixed = plan(request_);
  ASSERT_EQ(fixed.cells.size(), 2u);
  EXPECT_TRUE(fixed.cells[0].tuned.empty());
}

TEST_F(TunedSweep, RefusesWhatLeavesNoChoice) {
  request_.tune = "learning_rate=1e-3";
  EXPECT_THROW(plan(request_), Error);
  request_.tune = "learning_rat=[1e-3,2e-3]";
  EXPECT_THROW(plan(request_), Error);
  request_.tune = "learning_rate=[1e-3,3e-3]";
  request_.tasks.clear();
  request_.axes["measure"] = "speed";
  EXPECT_THROW(plan(request_), Error);
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
}  // namespace attn
