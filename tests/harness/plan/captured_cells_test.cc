// Cells as planned: captured ones, what they cost, how they are dealt out.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/costs.h"
#include "harness/plan/pilots.h"
#include "harness/plan/plan.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::captured_cells_test {
namespace {

// Fidelity cells whose inputs come from a model: their axes, ids, forecasts, and what is wrong.

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
  EXPECT_TRUE(says(error_of(captured("trained", {})), "choose one, such as -t mqar"));
  EXPECT_TRUE(says(error_of(captured("random")), "task 'mqar' does not apply"));
  SweepRequest request = captured("trained");
  request.axes["heads"] = "2";
  EXPECT_TRUE(says(error_of(request), "axis heads=2 does not apply to input trained"));
  EXPECT_TRUE(says(plan(captured("trained", {"translate"})).cells.at(0).skip, "sequences"));
  const auto fault = [](const std::string& text) {
    return fault_of([&] { read_profile("mine.toml", text); });
  };
  EXPECT_TRUE(says(fault("[[sweep]]\nmeasure = 'fidelity'\ntasks = ['mqar']\n"), "axes.input"));
}

// Costs: what is remembered is what a variant that is built anew says.

bool are_equal(const Cost& one, const Cost& other) {
  return one.flops == other.flops && one.peak_bytes == other.peak_bytes &&
         one.state_bytes == other.state_bytes;
}

TEST(Costs, AreThoseOfAVariantBuiltAnew) {
  Costs costs;
  for (int round = 0; round < 2; round++)
    for (const VariantInfo& info : all_variants())
      for (const int64_t length : {8, 300})
        for (const int64_t batch : {1, 3})
          for (const int64_t heads : {1, 2})
            for (const bool causal : {false, true}) {
              const AttentionShape shape{batch, heads, length, length, 16, causal};
              const Params params(info.name, info.params);
              Costs anew;
              EXPECT_TRUE(are_equal(costs.of(info, params, shape), anew.of(info, params, shape)))
                  << info.name << " " << length << " " << batch << " " << heads << " " << causal;
            }
}

TEST(Costs, ParametersAndTheNumberOfQueriesCount) {
  Costs costs;
  const VariantInfo& info = find_variant("linformer");
  const Params few(info.name, info.params, {{"rank", int64_t{8}}});
  const Params many(info.name, info.params, {{"rank", int64_t{16}}});
  const AttentionShape shape{1, 2, 64, 64, 16, false};
  AttentionShape one_query = shape;
  one_query.q_len = 1;
  EXPECT_LT(costs.of(info, few, shape).flops, costs.of(info, many, shape).flops);
  EXPECT_LT(costs.of(info, few, one_query).flops, costs.of(info, few, shape).flops);
}

TEST(Costs, WhatCannotBeBuiltCostsNothing) {
  const VariantInfo& info = find_variant("linformer");
  const AttentionShape huge{1, 1024, 1 << 22, 1 << 22, 1024, false};
  const Params params(info.name, info.params, {{"rank", int64_t{1'000'000'000}}});
  Costs costs;
  EXPECT_EQ(costs.of(info, params, huge).flops, 0);
  EXPECT_EQ(costs.of(info, params, huge).flops, 0);
}

// Shards: parts that take about the same time, and the same parts on every machine.

double least_share(const std::vector<double>& loads) {
  return *std::min_element(loads.begin(), loads.end()) /
         *std::max_element(loads.begin(), loads.end());
}

TEST(Shards, TakeAboutTheSameTime) {
  SweepRequest request =
      request_with({{"measure", "speed,accuracy"}, {"length", "64:2048:*2"}, {"seed", "0,1,2"}});
  request.variants = {"full", "linear", "truncated"};
  request.tasks = {"mqar[preset=small]", "listops[preset=small]"};
  request.shards = 4;
  request.shard = kEveryShard;
  std::vector<double> alone(4, 0), beside(4, 0);
  for (const Cell& cell : plan(request).cells) {
    const auto shard = static_cast<size_t>(cell.shard);
    (runs_alone(cell.key.measure) ? alone : beside)[shard] += cell.formula_s;
  }
  EXPECT_GT(least_share(alone), 0.4);  // a unit is all variants of a length
  EXPECT_GT(least_share(beside), 0.7);
}

// In whatever order the cells are asked for, and however many of them: the longest is a shard's
// first.
TEST(Shards, TheLongestUnitsAreApart) {
  SweepRequest request = request_with({{"measure", "memory"}, {"length", "64,128,8192,16384"}});
  request.variants = {"full"};
  request.shards = 2;
  std::vector<std::set<int64_t>> lengths;
  for (request.shard = 0; request.shard < 2; request.shard++) {
    lengths.emplace_back();
    for (const Cell& cell : plan(request).cells)
      lengths.back().insert(cell.key.axes.length.value());
  }
  EXPECT_EQ(lengths[0], (std::set<int64_t>{16384}));
  EXPECT_EQ(lengths[1], (std::set<int64_t>{64, 128, 8192}));
}

// Each job takes its part by itself: what was measured on its machine must not move a cell.
TEST(Shards, PilotsDoNotMoveCellsToAnotherShard) {
  SweepRequest request = request_with({{"measure", "accuracy"}, {"seed", "0,1"}});
  request.variants = {"full", "linear"};
  request.tasks = {"mqar[preset=small]", "listops[preset=small]"};
  request.shards = 3;
  const std::set<std::string> before = ids(request);
  request.pilots = testing::TempDir() + "shards-pilots.json";
  for (const Cell& cell : plan(request).cells) {
    Pilots pilots(request.pilots);
    const bool is_first = before.contains(cell.id);
    pilots.keep(PilotOf::training, cell.key,
                {.step_s = is_first ? 1e-4 : 10, .evaluation_s = 1e-4});
    pilots.keep(PilotOf::shortcuts, cell.key, {.shortcuts_s = 0});
  }
  EXPECT_TRUE(plan(request).cells.at(0).is_piloted);
  EXPECT_EQ(ids(request), before);
}

}  // namespace
}  // namespace attn::captured_cells_test
