// induction against a scan for the last token, and its gaps and symbols against uniform ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::induction_test {
namespace {

std::unique_ptr<Task> make(int64_t symbols, int64_t length) {
  return find_task("induction").build({{"symbols", symbols}, {"length", length}});
}

// What stands behind the latest earlier token equal to the last one.
int32_t solve(const std::vector<int32_t>& tokens) {
  for (size_t i = tokens.size() - 1; i-- > 0;)
    if (tokens[i] == tokens.back()) return tokens[i + 1];
  return kIgnoredLabel;
}

TEST(Induction, AScanForTheTriggerFindsEveryLabel) {
  for (const auto& task : {make(18, 32), make(15, 256), make(200, 7)}) {
    const auto trigger = static_cast<int32_t>(task->params().integer("symbols") + 1);
    const auto last = static_cast<size_t>(task->params().integer("length") - 1);
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(e.tokens.size(), last + 1);
      ASSERT_EQ(e.tokens.back(), trigger);
      ASSERT_EQ(std::count(e.tokens.begin(), e.tokens.end(), trigger), 2);
      ASSERT_EQ(e.target[last], solve(e.tokens));
      ASSERT_EQ(std::count(e.target.begin(), e.target.end(), kIgnoredLabel),
                static_cast<int64_t>(last));
      const auto first = std::find(e.tokens.begin(), e.tokens.end(), trigger) - e.tokens.begin();
      ASSERT_EQ(e.evidence,
                (std::vector{static_cast<int32_t>(first), static_cast<int32_t>(first + 1)}));
      ASSERT_EQ(e.distances[last], static_cast<int64_t>(last) - first - 1);
      ASSERT_EQ(e.slices.at("gap"), e.distances[last]);
    }
  }
}

TEST(Induction, TheEvidenceDecidesAndAllElseIsFree) {
  const auto task = make(18, 32);
  Rng random = rng(1, "free");
  for (int64_t i = 0; i < 300; i++) {
    Example e = task->example(3, Split::test, i);
    const int32_t label = e.target.back();
    const auto behind = static_cast<size_t>(e.evidence[1]);
    for (size_t p = 0; p + 1 < e.tokens.size(); p++)
      if (p + 1 != behind && p != behind) e.tokens[p] = static_cast<int32_t>(random.between(1, 18));
    ASSERT_EQ(solve(e.tokens), label);
    e.tokens[behind] = label % 18 + 1;
    ASSERT_NE(solve(e.tokens), label);
  }
}

TEST(Induction, GapsAndSymbolsAreUniform) {
  const auto task = make(9, 12);
  constexpr int kCount = 9000;
  std::map<int32_t, double> gaps, labels, others;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    gaps[e.distances.back()]++;
    labels[e.target.back()]++;
    for (size_t p = 0; p + 1 < e.tokens.size(); p++)
      if (static_cast<int32_t>(p) != e.evidence[0] && static_cast<int32_t>(p) != e.evidence[1])
        others[e.tokens[p]]++;
  }
  EXPECT_EQ(gaps.size(), 10u);  // 1 .. length - 2
  EXPECT_EQ(labels.size(), 9u);
  EXPECT_EQ(others.size(), 9u);
  for (const auto& [counts, draws] : {std::pair{gaps, 1.0}, {labels, 1.0}, {others, 9.0}}) {
    const double mean = kCount * draws / static_cast<double>(counts.size());
    for (const auto& [value, count] : counts)
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << value;
  }
}

TEST(Induction, LengthsAreUniformFromMinLengthOn) {
  const auto task = find_task("induction").build({{"length", 24}, {"min_length", 9}});
  EXPECT_EQ(task->shape().length, 24);
  constexpr int kCount = 8000;
  std::map<size_t, double> lengths;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(7, Split::train, i);
    const size_t last = e.tokens.size() - 1;
    lengths[e.tokens.size()]++;
    ASSERT_EQ(e.target.size(), 24u);
    ASSERT_EQ(e.target[last], solve(e.tokens));
    ASSERT_EQ(std::count(e.target.begin(), e.target.end(), kIgnoredLabel), 23);
    ASSERT_EQ(e.distances[last], static_cast<int32_t>(last) - e.evidence[1]);
  }
  ASSERT_EQ(lengths.size(), 16u);  // 9 .. 24
  const double mean = kCount / 16.0;
  for (const auto& [length, count] : lengths)
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << length;
  for (const int64_t wrong : {3, 25})
    EXPECT_THROW(find_task("induction").build({{"length", 24}, {"min_length", wrong}}), Error);
}

TEST(Induction, TheShapeDoesNotChangeWithTheLength) {
  for (const int64_t length : {16, 32, 64, 256}) {
    const TaskShape shape = make(18, length)->shape();
    EXPECT_EQ(shape.length, length);
    EXPECT_EQ(shape.vocab, 20);
    EXPECT_EQ(shape.classes, 19);
    EXPECT_TRUE(shape.causal && shape.per_token);
  }
  const auto mamba = find_task("induction").build({{"preset", std::string("mamba")}});
  EXPECT_EQ(mamba->params().integer("symbols"), 15);
  EXPECT_EQ(mamba->params().integer("length"), 256);
}

TEST(Induction, Shortcuts) {
  // Of two symbols one is the label; they differ with odds 1 - 1/1024, then the smaller is named.
  const std::vector<Shortcut> shortest = make(1024, 4)->shortcuts(1, 1000, 4000);
  EXPECT_NEAR(score_of(shortest, "most frequent symbol"), 0.5 + 0.5 / 1024,
              5 * std::sqrt(0.25 / 4000));
  // The last 16 tokens hold the trigger at 14 of its 30 places; else one of 18 is a guess.
  const std::vector<Shortcut> uniform = make(18, 32)->shortcuts(1, 1000, 2000);
  const double seen = 14.0 / 30, wanted = seen + (1 - seen) / 18;
  EXPECT_NEAR(score_of(uniform, "window of 16 (best)"), wanted, 5 * std::sqrt(0.25 / 2000));
  EXPECT_NEAR(score_of(uniform, "token there"), 1.0 / 18, 5 * std::sqrt(0.052 / 2000));
  EXPECT_LT(score_of(uniform, "most frequent symbol"), 0.2);
}

TEST(Induction, TooFewDifferentInputsAreAClearError) {
  EXPECT_TRUE(says(fault_of([&] { make(4, 8); }), "induction: 6 places of 4 symbols"));
  EXPECT_THROW(make(18, 3), Error);
}

}  // namespace
}  // namespace attn::induction_test
