// copy against a reader that finds the separators, and its words against uniform ones.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::copy_test {
namespace {

std::unique_ptr<Task> make(int64_t symbols, int64_t length, bool varied) {
  return find_task("copy").build({{"symbols", symbols}, {"length", length}, {"varied", varied}});
}

// What is to be said at each position: the word between the separators, from the second one on.
std::vector<int32_t> solve(const std::vector<int32_t>& tokens, int32_t separator, size_t length) {
  std::vector<int32_t> word, answer(length, kIgnoredLabel);
  size_t at = 1;
  while (tokens[at] != separator) word.push_back(tokens[at++]);
  for (const int32_t symbol : word) answer[at++] = symbol;
  return answer;
}

TEST(Copy, AReaderOfTheFirstCopyKnowsEveryLabel) {
  for (const auto& task : {make(10, 128, true), make(10, 128, false), make(127, 41, false),
                           make(33, 63, true), make(127, 1024, false)}) {
    const int64_t length = task->params().integer("length");
    const auto separator = static_cast<int32_t>(task->params().integer("symbols") + 1);
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      const auto n = static_cast<size_t>(e.slices.at("word"));
      ASSERT_EQ(e.tokens.size(), 2 * n + 2);
      ASSERT_EQ(e.tokens[0], separator);
      ASSERT_EQ(e.tokens[n + 1], separator);
      for (size_t j = 1; j <= n; j++) {
        ASSERT_LT(e.tokens[j], separator);
        ASSERT_EQ(e.tokens[n + 1 + j], e.tokens[j]);
      }
      ASSERT_EQ(e.target, solve(e.tokens, separator, static_cast<size_t>(length)));
      for (size_t p = 0; p < e.target.size(); p++)
        ASSERT_EQ(e.distances[p], e.target[p] == kIgnoredLabel ? -1 : static_cast<int64_t>(n));
      ASSERT_EQ(e.evidence.size(), n + 1);
      for (size_t j = 0; j <= n; j++) ASSERT_EQ(e.evidence[j], static_cast<int64_t>(j) + 1);
    }
  }
}

TEST(Copy, TheFirstCopyDecidesAndTheSecondIsFree) {
  const auto task = make(10, 64, true);
  Rng random = rng(1, "free");
  for (int64_t i = 0; i < 300; i++) {
    Example e = task->example(3, Split::test, i);
    const size_t half = e.tokens.size() / 2;
    for (size_t p = half + 1; p < e.tokens.size(); p++)
      e.tokens[p] = static_cast<int32_t>(random.between(1, 10));
    ASSERT_EQ(solve(e.tokens, 11, 64), e.target);
    e.tokens[half - 1] = e.tokens[half - 1] % 10 + 1;
    ASSERT_NE(solve(e.tokens, 11, 64), e.target);
  }
}

TEST(Copy, WordsAreAsLongAsTheDatasheetSays) {
  const TaskInfo& info = find_task("copy");
  std::map<double, double> lengths;
  std::map<int32_t, double> symbols;
  constexpr int kCount = 6200;  // 200 for each of the lengths 32 .. 62
  const auto rnn = info.build({{"preset", std::string("rnn")}});
  double total = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = rnn->example(5, Split::train, i);
    lengths[e.slices.at("word")]++;
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) symbols[label]++, total++;
  }
  EXPECT_EQ(lengths.size(), 31u);
  EXPECT_EQ(lengths.begin()->first, 32);
  EXPECT_EQ(lengths.rbegin()->first, 62);
  for (const auto& [n, count] : lengths)
    EXPECT_LT(std::abs(count - 200), 5 * std::sqrt(200.0)) << n;
  EXPECT_EQ(symbols.size(), 10u);
  for (const auto& [symbol, count] : symbols)
    EXPECT_LT(std::abs(count - total / 10), 5 * std::sqrt(total / 10)) << symbol;
  const auto reformer = info.build({{"preset", std::string("reformer")}});
  EXPECT_EQ(reformer->example(1, Split::test, 0).slices.at("word"), 511);
  EXPECT_EQ(reformer->shape().vocab, 129);
}

TEST(Copy, TheShapeDoesNotChangeWithTheLength) {
  for (const int64_t length : {64, 128, 512}) {
    const TaskShape shape = make(10, length, true)->shape();
    EXPECT_EQ(shape.length, length);
    EXPECT_EQ(shape.vocab, 12);
    EXPECT_EQ(shape.classes, 11);
    EXPECT_TRUE(shape.causal && shape.per_token);
  }
}

// Seven symbols, all different but for one word in 50000: with r left the smallest is right with
// odds 1/r, whatever came before, so that a word's hits have the variance of the sum below.
TEST(Copy, CountingKnowsWhatIsLeft) {
  const std::vector<Shortcut> shortcuts = make(1000000, 16, false)->shortcuts(1, 1000, 2000);
  double wanted = 0, variance = 0;
  for (int r = 1; r <= 7; r++) {
    wanted += 1.0 / r / 7;
    variance += (1.0 / r - 1.0 / r / r) / 49;
  }
  EXPECT_NEAR(score_of(shortcuts, "most frequent symbol left"), wanted,
              5 * std::sqrt(variance / 2000));
  EXPECT_LT(score_of(shortcuts, "position"), 0.01);
}

TEST(Copy, TooFewDifferentInputsAreAClearError) {
  try {
    make(10, 16, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("copy: 4 places of 10 symbols"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(make(10, 16, false));  // all words have 7 symbols
}

}  // namespace
}  // namespace attn::copy_test
