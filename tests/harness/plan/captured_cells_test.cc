// Fidelity cells whose inputs come from a model: their axes, ids, forecasts, and what is wrong.
#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"

namespace attn::captured_cells_test {
namespace {

SweepRequest captured(const std::string& inputs, std::vector<std::string> tasks = {"mqar"},
                      const std::string& training = "steps=500,heads=4") {
  SweepRequest request = request_with({{"measure", "fidelity"}, {"input", inputs}, {"batch", "3"}},
                                      {"full", "linear"});
  request.tasks = std::move(tasks);
  request.training = training;
  return request;
}

TEST(CapturedCells, TheTaskAndTheTrainingDecideTheShape) {
  const Plan plan = attn::plan(captured("[initial,trained]", {"mqar[length=128,pairs=4]"}));
  ASSERT_EQ(plan.cells.size(), 4U);
  for (const Cell& cell : plan.cells) {
    EXPECT_EQ(cell.key.axes.length, 128);
    EXPECT_EQ(cell.key.axes.heads, 4);
    EXPECT_EQ(cell.key.axes.head_dim, 16);
    EXPECT_EQ(cell.key.axes.causal, true);
    EXPECT_EQ(cell.key.axes.batch, 3);
    EXPECT_TRUE(reads_model(cell.key));
    EXPECT_EQ(cell.key.task.value().name, "mqar");
  }
  EXPECT_NE(ids(captured("trained")), ids(captured("trained", {"mqar"}, "steps=600,heads=4")));
  EXPECT_NE(ids(captured("trained")), ids(captured("initial")));
}

// The others read what the first one left.
TEST(CapturedCells, OneCellOfAModelPaysForItsTraining) {
  const Plan plan = attn::plan(captured("[initial,trained]"));
  std::vector<double> seconds;
  for (const Cell& cell : plan.cells) seconds.push_back(cell.forecast_s);
  std::sort(seconds.begin(), seconds.end());
  EXPECT_GT(seconds[3], 10 * seconds[2]);
}

TEST(CapturedCells, TheTrainingBehindAModelIsAnAccuracyCellOfExactAttention) {
  SweepRequest accuracy = request_with({{"measure", "accuracy"}}, {"full"});
  accuracy.tasks = {"mqar"};
  accuracy.training = "steps=500,heads=4";
  const Plan plan = attn::plan(captured("trained"));
  EXPECT_EQ(id_of(training_behind(plan.cells[1].key)), attn::plan(accuracy).cells.at(0).id);
}

TEST(CapturedCells, OtherInputsKeepTheirIdsAndHaveNoTask) {
  SweepRequest random = request_with({{"measure", "fidelity"}, {"length", "64"}}, {"full"});
  SweepRequest both = random;
  both.axes["input"] = "[random,trained]";
  both.tasks = {"mqar"};
  const Plan plan = attn::plan(both);
  ASSERT_EQ(plan.cells.size(), 2U);
  EXPECT_EQ(plan.cells[0].id, *ids(random).begin());
  EXPECT_FALSE(plan.cells[0].key.task);
}

// Random inputs beside trainings are planned once, not once a task.
TEST(CapturedCells, TasksOfAccuracyDoNotRepeatRandomInputs) {
  SweepRequest request =
      request_with({{"measure", "accuracy,fidelity"}, {"length", "64"}}, {"full"});
  request.tasks = {"mqar", "copy"};
  int64_t count = 0;
  for (const SweepConfig& config : plan(request).config.sweeps)
    count += config.measure == Measure::fidelity;
  EXPECT_EQ(count, 1);
}

TEST(CapturedCells, AProfilesRecipeTrainsTheModel) {
  SweepRequest request = captured("trained", {"mqar"}, "");
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[[sweep]]
measure = "accuracy"
tasks = ["mqar[length=128,pairs=4]"]
training = { steps = 77 }
[[sweep]]
measure = "fidelity"
variants = ["full"]
axes = { input = "trained" }
tasks = ["copy[length=16]"]
training = { steps = 88 }
)"));
  EXPECT_EQ(plan(request).cells.at(0).key.training.value().integer("steps"), 77);
  request.tasks.clear();
  const auto cells = plan(request).cells;
  ASSERT_FALSE(cells.empty());
  EXPECT_EQ(cells[0].key.task.value().name, "copy");
  EXPECT_EQ(cells[0].key.training.value().integer("steps"), 88);
}

TEST(CapturedCells, WhatIsWrongIsNamed) {
  EXPECT_NE(error_of(captured("trained", {})).find("choose one, such as -t mqar"),
            std::string::npos);
  EXPECT_NE(error_of(captured("random")).find("task 'mqar' does not apply"), std::string::npos);
  SweepRequest request = captured("trained");
  request.axes["heads"] = "2";
  EXPECT_NE(error_of(request).find("axis heads=2 does not apply to input trained"),
            std::string::npos);
  EXPECT_NE(plan(captured("trained", {"translate"})).cells.at(0).skip.find("sequences"),
            std::string::npos);
  const auto fault = [](const std::string& text) {
    try {
      read_profile("mine.toml", text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(fault("[[sweep]]\nmeasure = 'fidelity'\ntasks = ['mqar']\n").find("axes.input"),
            std::string::npos);
}

}  // namespace
}  // namespace attn::captured_cells_test
