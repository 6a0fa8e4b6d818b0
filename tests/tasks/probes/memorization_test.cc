// memorization: the map learned from training examples answers every other split and seed.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::memorization_test {
namespace {

std::unique_ptr<Task> make(int64_t vocab, int64_t length, int64_t map_seed = 0) {
  return find_task("memorization")
      .build({{"vocab", vocab}, {"length", length}, {"map_seed", map_seed}});
}

// What the examples of one split say; fails when they contradict each other.
std::map<int32_t, int32_t> map_of(const Task& task, uint64_t seed, Split split, int64_t count) {
  std::map<int32_t, int32_t> map;
  for (int64_t i = 0; i < count; i++) {
    const Example e = task.example(seed, split, i);
    for (size_t p = 1; p < e.tokens.size(); p += 2)
      EXPECT_EQ(map.emplace(e.tokens[p - 1], e.target[p]).first->second, e.target[p]);
  }
  return map;
}

TEST(Memorization, OneMapHoldsForAllSplitsAndSeeds) {
  for (const auto& [vocab, length, keys] : {std::tuple{256, 32, 127}, std::tuple{10, 24, 4}}) {
    const auto task = make(vocab, length);
    const auto learned = map_of(*task, 1, Split::train, 400);
    ASSERT_EQ(std::ssize(learned), keys);
    EXPECT_EQ(map_of(*task, 1, Split::validation, 400), learned);
    EXPECT_EQ(map_of(*task, 7, Split::test, 400), learned);
    std::set<int32_t> values;
    for (const auto& [key, value] : learned) {
      EXPECT_LE(key, keys);
      EXPECT_GT(value, keys);
      EXPECT_LT(value, vocab);
      EXPECT_TRUE(values.insert(value).second) << value << " twice";
    }
  }
}

TEST(Memorization, TheSeedOfTheMapDrawsItUniformly) {
  std::map<int32_t, double> of_first;
  constexpr int kMaps = 600;
  for (int64_t seed = 0; seed < kMaps; seed++)
    of_first[map_of(*make(8, 26, seed), 1, Split::train, 3).at(1)]++;
  ASSERT_EQ(of_first.size(), 4u);  // values 4 to 7 for keys 1 to 3
  for (const auto& [value, count] : of_first)
    EXPECT_NEAR(count, kMaps / 4.0, 5 * std::sqrt(kMaps / 4.0)) << value;
}

TEST(Memorization, KeysAndInsertTokensAlternate) {
  const auto task = make(64, 16);
  std::map<int32_t, double> keys;
  constexpr int kCount = 2000;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->any_example(3, Split::test, i);
    ASSERT_EQ(e.tokens.size(), 16u);
    for (size_t p = 0; p < e.tokens.size(); p += 2) {
      keys[e.tokens[p]]++;
      ASSERT_EQ(e.tokens[p + 1], 64);
      ASSERT_EQ(e.target[p], kIgnoredLabel);
      ASSERT_EQ(e.distances[p], -1);
      ASSERT_EQ(e.distances[p + 1], 1);
      ASSERT_EQ(e.evidence[p / 2], static_cast<int32_t>(p));
    }
  }
  ASSERT_EQ(keys.size(), 31u);
  const double mean = kCount * 8 / 31.0;
  for (const auto& [key, count] : keys) EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean));
}

// A table answers what training showed: of 4095 keys, 256 examples of 16 show all but a share of
// (1 - 1/4095)^4096, and the rest is a guess of one of the commonest labels.
TEST(Memorization, ALookUpKnowsWhatWasSeen) {
  EXPECT_EQ(score_of(make(64, 16)->shortcuts(1, 500, 500), "look-up of the key"), 1);
  const auto wide = find_task("memorization").build({{"preset", std::string("mad-wide")}});
  EXPECT_NEAR(score_of(wide->shortcuts(1, 1000, 1000), "look-up of the key"), 1 - std::exp(-1),
              0.02);
  EXPECT_DOUBLE_EQ(wide->chance(), 1.0 / 8193);
}

TEST(Memorization, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t length) -> std::string {
    try {
      make(vocab, length);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(64, 15).find("length=15 must be even"), std::string::npos);
  EXPECT_NE(message(64, 8).find("different inputs"), std::string::npos);
  EXPECT_EQ(message(64, 10), "");
}

}  // namespace
}  // namespace attn::memorization_test
