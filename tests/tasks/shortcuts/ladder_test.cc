// Each rung of the ladder on a rule that it can see and a lower one cannot, and all of them on a
// rule that none can see.
#include "tasks/shortcuts/ladder.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/rng.h"
#include "tests/tasks/score_of.h"

namespace attn::ladder_test {
namespace {

constexpr int64_t kLength = 96;
constexpr TaskShape kShape = {.length = kLength, .vocab = 10, .classes = 2};

using Rule = std::function<void(Example& e, Rng& random)>;

std::vector<Example> drawn(int count, uint64_t index, const Rule& rule) {
  Rng random = rng(4, "ladder_test", index);
  std::vector<Example> examples(static_cast<size_t>(count));
  for (Example& e : examples) {
    for (int64_t i = 0; i < kLength; i++)
      e.tokens.push_back(static_cast<int32_t>(random.between(1, 7)));
    e.target = {random.coin()};
    rule(e, random);
  }
  return examples;
}

std::vector<Shortcut> scores(const Rule& rule, const TaskShape& shape = kShape) {
  return ladder(shape, drawn(1500, 0, rule), drawn(600, 1, rule));
}

size_t place(Rng& random, int64_t room) {
  return static_cast<size_t>(random.between(0, kLength - 1 - room));
}

TEST(Ladder, FirstTokenSeesTheFirstToken) {
  const auto rungs = scores([](Example& e, Rng&) { e.tokens[0] = 3 + e.target[0]; });
  EXPECT_EQ(score_of(rungs, "first token"), 1);
  EXPECT_EQ(score_of(rungs, "window of 16 (best)"), 1);
  EXPECT_LT(score_of(rungs, "bag of tokens"), 0.8);
}

TEST(Ladder, LengthIsARungOnlyWhereItVaries) {
  const auto rungs = scores([](Example& e, Rng&) { e.tokens.resize(e.target[0] ? 40 : 90); });
  EXPECT_EQ(score_of(rungs, "length"), 1);
  EXPECT_THROW(score_of(scores([](Example&, Rng&) {}), "length"), Error);
}

TEST(Ladder, ABagCountsTokensWhereverTheyStand) {
  const auto rungs = scores([](Example& e, Rng& random) {
    for (int i = 0; i < 5; i++) e.tokens[place(random, 0)] = 8 + e.target[0];
  });
  EXPECT_GT(score_of(rungs, "bag of tokens"), 0.98);
  EXPECT_LT(score_of(rungs, "first token"), 0.6);
}

TEST(Ladder, NGramsSeeTheOrderOfNeighbours) {
  const auto rungs = scores([](Example& e, Rng& random) {
    const size_t at = place(random, 2);
    e.tokens[at] = 8 + e.target[0];
    e.tokens[at + 1] = 9 - e.target[0];
  });
  EXPECT_GT(score_of(rungs, "bag of n-grams to 4"), 0.98);
  EXPECT_NEAR(score_of(rungs, "bag of tokens"), 0.5, 0.08);
}

TEST(Ladder, PooledWindowsSeeTheOrderWithinSixteenTokens) {
  const auto apart = [](size_t distance) {
    return scores([distance](Example& e, Rng& random) {
      const size_t at = place(random, static_cast<int64_t>(distance));
      e.tokens[at] = 8 + e.target[0];
      e.tokens[at + distance] = 9 - e.target[0];
    });
  };
  const auto near = apart(13), far = apart(30);
  EXPECT_GT(score_of(near, "window of 16 (pooled)"), 0.95);
  EXPECT_LT(score_of(near, "bag of n-grams to 4"), 0.75);
  EXPECT_LT(score_of(far, "window of 16 (pooled)"), 0.75);
}

TEST(Ladder, TheBestWindowIsFoundWhereverItStands) {
  for (const size_t at : {2, 47, 94}) {
    const auto rungs = scores([at](Example& e, Rng&) { e.target[0] = e.tokens[at] > 4; });
    EXPECT_GT(score_of(rungs, "window of 16 (best)"), 0.98) << at;
    EXPECT_LT(score_of(rungs, "bag of n-grams to 4"), 0.65) << at;
  }
}

TEST(Ladder, WhatLiesApartIsSeenByNone) {
  const auto rungs =
      scores([](Example& e, Rng&) { e.target[0] = (e.tokens[5] + e.tokens[85]) % 2; });
  for (const Shortcut& rung : rungs) EXPECT_NEAR(rung.score, 0.5, 0.1) << rung.name;
}

TEST(Ladder, RealValuesAreSeenWithTheirProducts) {
  TaskShape shape = kShape;
  shape.vocab = 0;
  const auto rungs = scores(
      [](Example& e, Rng& random) {
        for (size_t i = 0; i < e.tokens.size(); i++)
          e.values.push_back(static_cast<float>(random.uniform(-1, 1)));
        e.tokens.clear();
        e.target[0] = e.values[50] * e.values[53] > 0;
      },
      shape);
  EXPECT_GT(score_of(rungs, "window of 16 (best)"), 0.85);
  EXPECT_NEAR(score_of(rungs, "first value"), 0.5, 0.1);
  EXPECT_NEAR(score_of(rungs, "bag of values"), 0.5, 0.1);
}

TEST(Ladder, TwoDocumentsAreComparedByWhatTheyShare) {
  TaskShape shape = kShape;
  shape.pairs = true;
  const auto rungs = scores(
      [](Example& e, Rng& random) {
        for (int64_t i = 0; i < kLength; i++)
          e.second.push_back(static_cast<int32_t>(random.between(1, 7)));
        if (!e.target[0]) return;
        const size_t from = place(random, 24), to = place(random, 24);
        for (size_t i = 0; i < 24; i++) e.second[to + i] = e.tokens[from + i];
      },
      shape);
  EXPECT_GT(score_of(rungs, "overlap"), 0.95);
  EXPECT_NEAR(score_of(rungs, "first token"), 0.5, 0.1);
  EXPECT_LT(score_of(rungs, "window of 16 (best)"), 0.65);
}

// A label at every seventh position from the thirtieth on: the token `back` places before.
std::vector<Shortcut> copying(size_t back, int64_t classes) {
  TaskShape shape = kShape;
  shape.per_token = shape.causal = true;
  shape.classes = classes;
  return scores(
      [back](Example& e, Rng&) {
        e.target.assign(static_cast<size_t>(kLength), kIgnoredLabel);
        for (size_t i = 30; i < e.target.size(); i += 7) e.target[i] = e.tokens[i - back];
      },
      shape);
}

TEST(Ladder, LabelsOfPositionsAreCopiedFromTheSixteenTokensBefore) {
  for (const int64_t classes : {8, 100}) {  // with and without the linear classifier
    EXPECT_EQ(score_of(copying(0, classes), "token there"), 1);
    EXPECT_EQ(score_of(copying(15, classes), "window of 16 (best)"), 1);
    EXPECT_LT(score_of(copying(16, classes), "window of 16 (best)"), 0.25);
    EXPECT_LT(score_of(copying(15, classes), "position"), 0.25);
  }
}

TEST(Ladder, FitsFewerOfTheLongestExamples) {
  EXPECT_EQ(ladder_examples(kShape, 10000), 10000);
  EXPECT_EQ(ladder_examples({.length = 16384}, 10000), 1024);
  EXPECT_EQ(ladder_examples({.length = 16384}, 30), 30);
  EXPECT_EQ(ladder_examples({.length = 16384, .pairs = true}, 10000), 512);
}

}  // namespace
}  // namespace attn::ladder_test
