// compose against a walk from pair to pair.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::compose_test {
namespace {

std::unique_ptr<Task> make(const std::map<std::string, ParamValue>& more,
                           const char* preset = "small") {
  std::map<std::string, ParamValue> given = more;
  given.emplace("preset", std::string(preset));
  return find_task("compose").build(given);
}

TEST(Compose, AWalkSolvesIt) {
  for (const char* preset : {"small", "standard"}) {
    const auto task = make({}, preset);
    const auto symbols = static_cast<int32_t>(task->params().integer("symbols"));
    const int64_t pairs = task->params().integer("pairs"), hops = task->params().integer("hops");
    std::map<double, int> counts;
    for (int64_t i = 0; i < 10'000; i++) {
      const Example e = task->example(5, Split::validation, i);
      ASSERT_EQ(std::ssize(e.evidence), 2 * pairs);
      std::map<int32_t, size_t> value_at;
      for (size_t p = 0; p < e.evidence.size(); p += 2) {
        ASSERT_GE(e.tokens[p], 1);
        ASSERT_LE(e.tokens[p], symbols);
        value_at[e.tokens[p]] = p + 1;
      }
      ASSERT_EQ(std::ssize(value_at), pairs);
      std::set<int32_t> asked;
      for (size_t p = 0; p < e.target.size(); p++) {
        if (e.target[p] == kIgnoredLabel) {
          ASSERT_EQ(e.distances[p], -1);
          continue;
        }
        asked.insert(e.tokens[p]);
        int32_t key = e.tokens[p];
        size_t earliest = p;
        const int32_t steps = e.tokens[p - 1] - symbols - 1;
        ASSERT_EQ(steps, e.slices.at("hops"));
        for (int32_t step = 0; step < steps; step++) {
          earliest = std::min(earliest, value_at.at(key) - 1);
          key = e.tokens[value_at.at(key)];
        }
        ASSERT_EQ(e.target[p], key);
        ASSERT_NE(key, e.tokens[p]);
        ASSERT_EQ(e.distances[p], p - earliest);
      }
      ASSERT_EQ(std::ssize(asked), pairs);
      counts[e.slices.at("hops")]++;
    }
    ASSERT_EQ(std::ssize(counts), hops);
    for (const auto& [steps, count] : counts) {
      const double mean = 10'000.0 / static_cast<double>(hops);
      EXPECT_NEAR(count, mean, 5 * std::sqrt(mean)) << steps;
    }
  }
}

TEST(Compose, FewerHopsGuessAmongTheKeysNotPassed) {
  const std::vector<Shortcut> two = make({{"min_hops", 2}})->shortcuts(1, 500, 500);
  EXPECT_NEAR(score_of(two, "1 hop at most"), 1.0 / 6, 1e-9);  // 8 less the key and its value
  const std::vector<Shortcut> mixed =
      make({{"pairs", 9}, {"hops", 4}, {"min_hops", 1}})->shortcuts(1, 500, 4000);
  for (const int hops : {1, 2, 3})
    EXPECT_NEAR(score_of(mixed, fmt::format("{} hop{} at most", hops, hops == 1 ? "" : "s")),
                hops / 4.0 + (1 - hops / 4.0) / (8 - hops), 0.04)
        << hops;
  EXPECT_NEAR(score_of(mixed, "random context value"), 1.0 / 9, 1e-9);
}

TEST(Compose, BadParametersAreClearErrors) {
  const auto message = [](const std::map<std::string, ParamValue>& more) -> std::string {
    return fault_of([&] { make(more); });
  };
  EXPECT_TRUE(says(message({{"length", 33}}), "length=33 must be even"));
  EXPECT_TRUE(says(message({{"length", 30}}), "at least 32, got length=30"));
  EXPECT_TRUE(says(message({{"symbols", 7}}), "symbols=7 are fewer than pairs=8"));
  EXPECT_TRUE(says(message({{"hops", 4}}),
                   "hops=4 with pairs=8: as few steps back along the cycle reach the label; "
                   "expected at most 3 hops, or more pairs"));
  EXPECT_TRUE(says(message({{"min_hops", 3}}), "min_hops=3 is neither 0 nor from 1 to hops=2"));
  EXPECT_TRUE(says(message({{"symbols", 3}, {"pairs", 3}, {"hops", 1}, {"length", 12}}),
                   "compose: 3 of 3 symbols in 12 tokens make only 72 different inputs"));
  EXPECT_EQ(message({{"hops", 3}}), "");
}

}  // namespace
}  // namespace attn::compose_test
