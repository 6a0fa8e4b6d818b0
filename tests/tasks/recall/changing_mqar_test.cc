// mqar where keys are bound again and deleted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::changing_mqar_test {
namespace {

std::unique_ptr<Task> make(const std::map<std::string, ParamValue>& more,
                           const char* preset = "small") {
  std::map<std::string, ParamValue> given = more;
  given.emplace("preset", std::string(preset));
  return find_task("mqar").build(given);
}

// Reads the sequence from the left with a memory; kIgnoredLabel where a key was never bound.
std::vector<int32_t> solved(const Example& e, int32_t deleted) {
  std::map<int32_t, int32_t> memory;
  std::vector<int32_t> answers(e.target.size(), kIgnoredLabel);
  for (size_t i = 0; i < e.tokens.size(); i += 2) {
    const auto held = memory.find(e.tokens[i]);
    if (i < e.evidence.size())
      memory[e.tokens[i]] = e.tokens[i + 1];
    else if (e.target[i] != kIgnoredLabel)
      answers[i] = held == memory.end() ? deleted + 1 : held->second;
  }
  return answers;
}

TEST(ChangingMqar, AMemoryThatIsOverwrittenSolvesIt) {
  for (const auto& task : {make({}, "updates"), make({}, "deletes"),
                           make({{"updates", 3}, {"deletes", 1}, {"random_non_queries", false}})})
    for (int64_t i = 0; i < 10'000; i++) {
      const Example e = task->example(3, Split::test, i);
      ASSERT_EQ(solved(e, static_cast<int32_t>(task->shape().vocab - 1)), e.target) << i;
    }
}

// What a memory without order holds of a key, its values and a deletion, is the same for all keys.
TEST(ChangingMqar, EachKeyIsBoundAgainToAnotherValueAndDeletedOnce) {
  const auto task = make({{"updates", 2}, {"deletes", 2}});
  const auto deleted = static_cast<int32_t>(task->shape().vocab - 1);
  EXPECT_EQ(deleted, 64);
  EXPECT_EQ(task->shape().classes, 65);
  std::array<double, 2> places{};  // of the deletions of keys that were bound again
  for (int64_t i = 0; i < 300; i++) {
    const Example e = task->example(3, Split::train, i);
    ASSERT_EQ(e.evidence.size(), 2u * 4 * 4);
    std::map<int32_t, std::vector<int32_t>> values;
    for (size_t p = 0; p < e.evidence.size(); p += 2)
      values[e.tokens[p]].push_back(e.tokens[p + 1]);
    ASSERT_EQ(values.size(), 4u);
    size_t deletions = 0;
    for (auto& [key, bound] : values) {
      ASSERT_GE(key, 1);
      ASSERT_LT(key, 32);
      ASSERT_EQ(bound.size(), 4u);
      deletions += bound.back() == deleted;
      const auto at = std::find(bound.begin(), bound.end(), deleted);
      ASSERT_NE(at, bound.end());
      ASSERT_NE(at, bound.begin());
      if (at + 1 != bound.end()) places[static_cast<size_t>(at - bound.begin() - 1)]++;
      bound.erase(at);
      for (size_t v = 0; v < bound.size(); v++) {
        ASSERT_GE(bound[v], 32);
        ASSERT_LT(bound[v], 64);
        ASSERT_TRUE(v == 0 || bound[v - 1] != bound[v]);
      }
    }
    ASSERT_EQ(deletions, 2u);
    std::multiset<int32_t> asked;
    double later = 0;
    for (size_t p = 0; p < e.target.size(); p++) {
      if (e.target[p] == kIgnoredLabel) continue;
      asked.insert(e.tokens[p]);
      ASSERT_EQ(e.tokens[p - static_cast<size_t>(e.distances[p])], e.target[p]);
      ASSERT_EQ(e.tokens[p - static_cast<size_t>(e.distances[p]) - 1], e.tokens[p]);
      const size_t source = p - static_cast<size_t>(e.distances[p]);
      later += (31.0 - static_cast<double>(source)) / 2;
      ASSERT_EQ(e.label_slices.at("later").at(p), (31 - static_cast<int>(source)) / 2);
    }
    ASSERT_EQ(asked.size(), 4u);
    ASSERT_TRUE(std::equal(asked.begin(), asked.end(), values.begin(), values.end(),
                           [](int32_t key, const auto& entry) { return key == entry.first; }));
    ASSERT_DOUBLE_EQ(e.slices.at("mean_later"), later / 4);
  }
  EXPECT_NEAR(places[0], 300, 5 * std::sqrt(150.0));  // of 600
}

// Of m bindings in uniform order, the last of a key that has c of them has j behind it with the
// probability C(m − j − 1, c − 1)/C(m, c).
TEST(ChangingMqar, TheOrderIsUniform) {
  const auto task = make({{"pairs", 3}, {"updates", 1}, {"length", 32}});
  constexpr int kCount = 20'000, kBindings = 6;
  std::vector<double> counts(kBindings);
  double labels = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(4, Split::train, i);
    for (size_t p = 0; p < e.target.size(); p++) {
      if (e.target[p] == kIgnoredLabel) continue;
      const auto source = static_cast<int>(p) - e.distances[p];
      counts[static_cast<size_t>((2 * kBindings - 1 - source) / 2)]++;
      labels++;
    }
  }
  for (int j = 0; j < kBindings; j++) {
    const double p = (kBindings - j - 1) / 15.0;  // C(6, 2) = 15
    EXPECT_NEAR(counts[static_cast<size_t>(j)], labels * p, 5 * std::sqrt(labels * p) + 1e-9) << j;
  }
}

TEST(ChangingMqar, ShortcutsAreThoseOfAMemoryThatForgetsTheOrder) {
  const std::vector<Shortcut> updated = make({}, "updates")->shortcuts(1, 2000, 2000);
  // Three values, each another than the one before: the first and the last are the same with odds
  // 1/31, and then it is the most frequent one.
  EXPECT_NEAR(score_of(updated, "first value of the key"), 1.0 / 31, 0.01);
  EXPECT_NEAR(score_of(updated, "most frequent value of the key"), 1.0 / 31 + 30.0 / 31 / 3, 0.01);
  EXPECT_NEAR(score_of(updated, "random context value"), 1.0 / 12 + 11.0 / 12 / 32, 0.01);
  const std::vector<Shortcut> deleted = make({}, "deletes")->shortcuts(1, 2000, 1000);
  EXPECT_DOUBLE_EQ(score_of(deleted, "last value of the key, as if never deleted"), 0.5);
  EXPECT_DOUBLE_EQ(score_of(deleted, "majority"), 0.5);
  EXPECT_DOUBLE_EQ(score_of(deleted, "first value of the key"), 0);  // each is bound twice
  EXPECT_NEAR(score_of(deleted, "most frequent value of the key"), 0.25, 0.02);
}

// What was measured before the parameters were there keeps its key; golden.txt has its examples.
TEST(ChangingMqar, AKeyHoldsTheParametersWhereTheyAreUsed) {
  const auto held = [](const Task& task) {
    return task.params().for_key(find_task("mqar").params).values();
  };
  EXPECT_FALSE(held(*make({{"updates", 0}})).contains("updates"));
  EXPECT_TRUE(held(*make({}, "updates")).contains("updates"));
  EXPECT_FALSE(held(*make({}, "updates")).contains("deletes"));
}

TEST(ChangingMqar, BadParametersAreClearErrors) {
  const auto message = [](const std::map<std::string, ParamValue>& more) -> std::string {
    return fault_of([&] { make(more); });
  };
  EXPECT_TRUE(says(message({{"deletes", 5}}), "deletes=5 of pairs=4; at most all"));
  EXPECT_TRUE(says(message({{"updates", 1}, {"passes", 2}}), "passes=2 lists the same pairs"));
  EXPECT_TRUE(
      says(message({{"updates", 7}}), "updates=7 and deletes=0 need a length of at least 72"));
  EXPECT_TRUE(says(message({{"updates", 1}, {"mixture", std::string("zoology")}}),
                   "updates counts only with mixture=one"));
  EXPECT_EQ(message({{"deletes", 4}}), "");
}

}  // namespace
}  // namespace attn::changing_mqar_test
