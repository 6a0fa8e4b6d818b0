// Shards: parts that take about the same time, and the same parts on every machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "harness/plan/pilots.h"
#include "harness/plan/plan.h"
#include "tests/harness/plan/planned.h"

namespace attn::shards_test {
namespace {

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
}  // namespace attn::shards_test
