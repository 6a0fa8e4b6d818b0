// The ladder where the answer is no label of a sequence of tokens: numbers, output sequences,
// several channels, edges, labels read from the last vector, labels of positions seen both ways.
#include <gtest/gtest.h>

#include <functional>

#include "core/base/rng.h"
#include "tasks/shortcuts/ladder.h"
#include "tests/tasks/score_of.h"

namespace attn::ladder_kinds_test {
namespace {

constexpr int64_t kLength = 40;
using Draw = std::function<Example(Rng& random)>;

std::vector<Shortcut> scores(const TaskShape& shape, const Draw& draw) {
  std::vector<Example> train, test;
  Rng random = rng(5, "ladder_kinds_test");
  for (int i = 0; i < 1500; i++) train.push_back(draw(random));
  for (int i = 0; i < 600; i++) test.push_back(draw(random));
  return ladder(shape, train, test);
}

std::vector<float> numbers(Rng& random, int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; i++) result.push_back(static_cast<float>(random.uniform(-1, 1)));
  return result;
}

std::vector<int32_t> symbols(Rng& random, int64_t count) {
  std::vector<int32_t> result;
  for (int64_t i = 0; i < count; i++) result.push_back(static_cast<int32_t>(random.between(1, 7)));
  return result;
}

constexpr TaskShape kNumber = {.length = kLength, .classes = 1, .channels = 2, .real = true};

TEST(LadderKinds, ANumberIsPredictedByItsMeanALineAndSumsOfProducts) {
  const auto line = scores(kNumber, [](Rng& random) {
    Example e{.values = numbers(random, 2 * kLength)};
    e.wanted = {3 + e.values[4] - 2 * e.values[31]};
    return e;
  });
  ASSERT_EQ(line.size(), 3u);
  EXPECT_EQ(line[0].name, "mean of the answers");
  EXPECT_NEAR(line[0].score, 5.0 / 3, 0.25);  // the variance: 1/3 and 4 times 1/3
  EXPECT_LT(score_of(line, "linear in the inputs"), 0.01);
  EXPECT_GT(score_of(line, "bag of values"), 1);
  const auto product = scores(kNumber, [](Rng& random) {
    Example e{.values = numbers(random, 2 * kLength), .wanted = {0}};
    for (size_t i = 0; i < e.values.size(); i += 2) e.wanted[0] += e.values[i] * e.values[i + 1];
    return e;
  });
  EXPECT_LT(score_of(product, "bag of values"), 0.01);
  EXPECT_GT(score_of(product, "linear in the inputs"), 0.9 * product[0].score);
}

// More numbers than are regressed on at once: neighbours are added up.
TEST(LadderKinds, OfLongInputsALineSeesStretches) {
  TaskShape shape = kNumber;
  shape.length = 1500;
  const auto rungs = scores(shape, [](Rng& random) {
    Example e{.values = numbers(random, 3000), .wanted = {0}};
    for (size_t i = 1; i < 600; i += 2) e.wanted[0] += e.values[i];  // of the second channel
    return e;
  });
  EXPECT_LT(score_of(rungs, "linear in the inputs"), 0.5 * rungs[0].score);
}

TEST(LadderKinds, ANumberOfTokensIsPredictedFromTheirBag) {
  const auto rungs =
      scores({.length = kLength, .vocab = 8, .classes = 1, .real = true}, [](Rng& random) {
        Example e{.tokens = symbols(random, kLength), .wanted = {0}};
        for (const int32_t t : e.tokens) e.wanted[0] += t == 3 ? 2.0f : 0.0f;
        return e;
      });
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_LT(score_of(rungs, "bag of tokens"), 0.01);
}

TEST(LadderKinds, OfOutputSequencesTheMostFrequentOneIsAllThereIs) {
  const auto rungs =
      scores({.length = kLength, .vocab = 8, .classes = 8, .outputs = 3}, [](Rng& random) {
        Example e{.tokens = symbols(random, kLength)};
        e.target = random.below(4) ? symbols(random, 3) : std::vector<int32_t>{5, 5};
        return e;
      });
  ASSERT_EQ(rungs.size(), 1u);
  EXPECT_EQ(rungs[0].name, "majority");
  EXPECT_NEAR(rungs[0].score, 0.25, 0.09);  // five deviations of 600
}

constexpr TaskShape kVectors = {.length = kLength, .classes = 2, .per_token = true, .channels = 3};

// Vectors, each labelled by whether the sum of two channels `back` places before is positive.
std::vector<Shortcut> vectors(int64_t back, bool causal) {
  TaskShape shape = kVectors;
  shape.causal = causal;
  return scores(shape, [back](Rng& random) {
    Example e{.values = numbers(random, 3 * kLength)};
    for (int64_t p = 0; p < kLength; p++) {
      const auto from = static_cast<size_t>(3 * ((p - back + kLength) % kLength));
      e.target.push_back(e.values[from] + e.values[from + 2] > 0);
    }
    return e;
  });
}

TEST(LadderKinds, ALabelOfAVectorIsReadThereOrAround) {
  EXPECT_GT(score_of(vectors(0, false), "values there"), 0.97);
  EXPECT_LT(score_of(vectors(1, false), "values there"), 0.6);
  for (const int64_t back : {8, 3, -7}) {  // of 40 labels 8, 3 and 7 lie beyond the other end
    EXPECT_GT(score_of(vectors(back, false), "window of 16 (best)"), 0.85) << back;
  }
  EXPECT_GT(score_of(vectors(15, true), "window of 16 (best)"), 0.75);
  EXPECT_LT(score_of(vectors(-1, true), "window of 16 (best)"), 0.6);
  EXPECT_LT(score_of(vectors(11, false), "window of 16 (best)"), 0.6);
}

TEST(LadderKinds, TokensAroundAreCopiedFromBothSidesUnlessCausal) {
  const auto copying = [](int64_t back, bool causal) {
    const TaskShape shape = {
        .length = kLength, .vocab = 8, .classes = 8, .per_token = true, .causal = causal};
    return score_of(scores(shape,
                           [back](Rng& random) {
                             Example e{.tokens = symbols(random, kLength)};
                             e.target.assign(static_cast<size_t>(kLength), kIgnoredLabel);
                             for (int64_t p = 16; p < 24; p++)
                               e.target[static_cast<size_t>(p)] =
                                   e.tokens[static_cast<size_t>(p - back)];
                             return e;
                           }),
                    "window of 16 (best)");
  };
  for (const int64_t back : {8, -7}) EXPECT_EQ(copying(back, false), 1) << back;
  for (const int64_t back : {9, -8}) EXPECT_LT(copying(back, false), 0.25) << back;
  EXPECT_EQ(copying(15, true), 1);
  EXPECT_LT(copying(-1, true), 0.25);
}

// The label: whether more of those seen hold token 2 than token 1, the position itself apart.
TEST(LadderKinds, NeighboursAreCountedAlongTheEdges) {
  const TaskShape shape = {
      .length = kLength, .vocab = 8, .classes = 2, .per_token = true, .edges = true};
  const auto rungs = scores(shape, [](Rng& random) {
    Example e{.tokens = symbols(random, kLength)};
    for (int32_t p = 0; p < kLength; p++) {
      int32_t more = 0;
      for (int32_t j = 0; j < kLength; j++) {
        if (j != p && random.below(4)) continue;
        e.edges.emplace_back(p, j);
        const int32_t token = e.tokens[static_cast<size_t>(j)];
        if (j != p) more += (token == 2) - (token == 1);
      }
      e.target.push_back(more > 0);
    }
    return e;
  });
  EXPECT_GT(score_of(rungs, "bag of neighbours"), 0.9);
  EXPECT_LT(score_of(rungs, "token there"), 0.7);
}

TEST(LadderKinds, TheLastVectorKnowsTheLastTokensAlone) {
  const TaskShape shape = {
      .length = kLength, .vocab = 8, .classes = 8, .per_token = true, .compressed = true};
  const auto rungs = scores(shape, [](Rng& random) {
    Example e{.tokens = symbols(random, kLength)};
    e.target = e.tokens;
    return e;
  });
  const double guess = 1.0 / 7, seen = 16.0 / kLength;
  EXPECT_NEAR(score_of(rungs, "window of 16 (last)"), seen + (1 - seen) * guess, 0.02);
  EXPECT_NEAR(score_of(rungs, "position"), guess, 0.02);
  EXPECT_THROW(score_of(rungs, "token there"), Error);
}

TEST(LadderKinds, SequencesOfVectorsHaveABagAndAWindow) {
  const TaskShape shape = {.length = kLength, .classes = 2, .channels = 3};
  const auto bag = scores(shape, [](Rng& random) {
    Example e{.values = numbers(random, 3 * kLength)};
    double sum = 0;
    for (size_t i = 1; i < e.values.size(); i += 3) sum += static_cast<double>(e.values[i]);
    e.target = {sum > 0};
    return e;
  });
  EXPECT_GT(score_of(bag, "bag of values"), 0.95);
  const auto window = scores(shape, [](Rng& random) {
    Example e{.values = numbers(random, 3 * kLength)};
    e.target = {e.values[3 * 20] + e.values[3 * 22 + 2] > 0};
    return e;
  });
  EXPECT_GT(score_of(window, "window of 16 (best)"), 0.85);
  EXPECT_LT(score_of(window, "bag of values"), 0.65);
}

TEST(LadderKinds, FitsFewerExamplesOfManyChannels) {
  EXPECT_EQ(ladder_examples({.length = 512, .channels = 16}, 10000), 2048);
}

}  // namespace
}  // namespace attn::ladder_kinds_test
