// selective_copy against a reader that leaves out the blanks, and its places against their
// distributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::selective_copy_test {
namespace {

std::unique_ptr<Task> make(int64_t symbols, int64_t items, int64_t length,
                           const char* places = "uniform") {
  return find_task("selective_copy")
      .build({{"symbols", symbols},
              {"items", items},
              {"length", length},
              {"places", std::string(places)}});
}

TEST(SelectiveCopy, AReaderWhoLeavesOutTheBlanksKnowsEveryLabel) {
  for (const auto& task : {make(14, 16, 256), make(14, 16, 256, "gaps"), make(3, 30, 60),
                           make(1000, 2, 7), make(14, 16, 4096)}) {
    const auto blank = static_cast<int32_t>(task->params().integer("symbols") + 1);
    const int64_t items = task->params().integer("items"),
                  length = task->params().integer("length");
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      std::vector<int32_t> word, places;
      int32_t at = 0;
      for (; e.tokens[static_cast<size_t>(at)] <= blank; at++)
        if (e.tokens[static_cast<size_t>(at)] < blank) {
          word.push_back(e.tokens[static_cast<size_t>(at)]);
          places.push_back(at);
        }
      ASSERT_EQ(at, length - items);
      ASSERT_EQ(std::ssize(word), items);
      ASSERT_EQ(e.evidence, places);
      double sum = 0;
      for (int32_t p = 0; p < length; p++) {
        const auto here = static_cast<size_t>(p), which = static_cast<size_t>(p - at);
        ASSERT_EQ(e.target[here], p < at ? kIgnoredLabel : word[which]);
        ASSERT_EQ(e.distances[here], p < at ? -1 : p - places[which]);
        if (p < at) continue;
        ASSERT_EQ(e.tokens[here], blank + 1);
        ASSERT_GE(e.distances[here], items);
        sum += e.distances[here];
      }
      ASSERT_NEAR(e.slices.at("mean_gap"), sum / static_cast<double>(items), 1e-9);
    }
  }
}

TEST(SelectiveCopy, EverySetOfPlacesIsEquallyLikelyAndSoIsEverySymbol) {
  const auto task = make(128, 3, 9);  // 3 of 6 places: 20 sets
  constexpr int kCount = 8000;
  std::map<std::vector<int32_t>, double> sets;
  std::map<int32_t, double> symbols;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    sets[e.evidence]++;
    for (const int32_t p : e.evidence) symbols[e.tokens[static_cast<size_t>(p)]]++;
  }
  EXPECT_EQ(sets.size(), 20u);
  for (const auto& [places, count] : sets) EXPECT_LT(std::abs(count - 400), 5 * std::sqrt(400.0));
  EXPECT_EQ(symbols.size(), 128u);
  const double mean = 3.0 * kCount / 128;
  for (const auto& [symbol, count] : symbols)
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << symbol;
}

TEST(SelectiveCopy, InGapsEveryBlankChoosesTheSymbolThatItStandsBefore) {
  const auto task = make(1000, 2, 7, "gaps");  // 3 blanks: a binomial number before the first
  constexpr int kCount = 8000;
  std::vector<double> first(4);
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    ASSERT_EQ(e.evidence[1], 4);
    first.at(static_cast<size_t>(e.evidence[0]))++;
  }
  for (size_t before = 0; before < 4; before++) {
    const double mean = kCount * (before == 0 || before == 3 ? 1.0 : 3.0) / 8;
    EXPECT_LT(std::abs(first[before] - mean), 5 * std::sqrt(mean)) << before;
  }
}

TEST(SelectiveCopy, TheShapeDoesNotChangeWithTheLengthAndPresetsAreThoseOfTheLiterature) {
  for (const int64_t length : {64, 256, 1024}) {
    const TaskShape shape = make(14, 16, length)->shape();
    EXPECT_EQ(shape.length, length);
    EXPECT_EQ(shape.vocab, 17);
    EXPECT_EQ(shape.classes, 15);
    EXPECT_TRUE(shape.causal && shape.per_token);
  }
  const TaskInfo& info = find_task("selective_copy");
  EXPECT_EQ(info.build({{"preset", std::string("mamba")}})->shape().length, 4096);
  const auto mad = info.build({{"preset", std::string("mad")}});
  for (int64_t i = 0; i < 50; i++)
    EXPECT_EQ(mad->example(1, Split::test, i).evidence.back(), 256 - 16 - 1);
}

// Eight symbols, all different but for one example in 35000; see the test of copy.
TEST(SelectiveCopy, CountingKnowsWhatIsLeft) {
  const std::vector<Shortcut> shortcuts = make(1000000, 8, 32)->shortcuts(1, 1000, 2000);
  double wanted = 0, variance = 0;
  for (int r = 1; r <= 8; r++) {
    wanted += 1.0 / r / 8;
    variance += (1.0 / r - 1.0 / r / r) / 64;
  }
  EXPECT_NEAR(score_of(shortcuts, "most frequent symbol left"), wanted,
              5 * std::sqrt(variance / 2000));
}

TEST(SelectiveCopy, BadParametersAreClearErrors) {
  const auto message = [](int64_t symbols, int64_t items, int64_t length) -> std::string {
    return fault_of([&] { make(symbols, items, length); });
  };
  EXPECT_TRUE(says(message(14, 16, 31), "a length of at least 32, got length=31"));
  EXPECT_EQ(message(14, 16, 32), "");
  EXPECT_TRUE(says(message(14, 2, 32), "85260 different inputs"));  // 14²·30·29/2
}

}  // namespace
}  // namespace attn::selective_copy_test
