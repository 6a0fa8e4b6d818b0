// Tasks whose answer is the sequence: copied, reversed or sorted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::copy_test {
namespace {

// copy against a reader that finds the separators, and its words against uniform ones.

std::unique_ptr<Task> make_copy(int64_t symbols, int64_t length, bool varied) {
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
  for (const auto& task :
       {make_copy(10, 128, true), make_copy(10, 128, false), make_copy(127, 41, false),
        make_copy(33, 63, true), make_copy(127, 1024, false)}) {
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
  const auto task = make_copy(10, 64, true);
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
    const TaskShape shape = make_copy(10, length, true)->shape();
    EXPECT_EQ(shape.length, length);
    EXPECT_EQ(shape.vocab, 12);
    EXPECT_EQ(shape.classes, 11);
    EXPECT_TRUE(shape.causal && shape.per_token);
  }
}

// Seven symbols, all different but for one word in 50000: with r left the smallest is right with
// odds 1/r, whatever came before, so that a word's hits have the variance of the sum below.
TEST(Copy, CountingKnowsWhatIsLeft) {
  const std::vector<Shortcut> shortcuts = make_copy(1000000, 16, false)->shortcuts(1, 1000, 2000);
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
  EXPECT_TRUE(says(fault_of([&] { make_copy(10, 16, true); }), "copy: 4 places of 10 symbols"));
  EXPECT_NO_THROW(make_copy(10, 16, false));  // all words have 7 symbols
}

// reverse against reading the source from its end, its distribution against uniform counts, and its
// scores against their closed forms.

std::unique_ptr<Task> make_reverse(int64_t symbols, int64_t length, int64_t min_length = 0) {
  return find_task("reverse").build(
      {{"symbols", symbols}, {"length", length}, {"min_length", min_length}});
}

TEST(Reverse, TheOutputIsTheSourceReadFromItsEnd) {
  for (const auto& task : {make_reverse(16, 32), make_reverse(2, 50, 20), make_reverse(1100, 7, 2)})
    for (const Split split : {Split::train, Split::test})
      for (int64_t i = 0; i < 200; i++) {
        const Example e = task->example(3, split, i);
        const size_t n = e.tokens.size();
        ASSERT_EQ(e.target.size(), n);
        for (size_t p = 0; p < n; p++) ASSERT_EQ(e.target[p] + 1, e.tokens[n - 1 - p]);
        ASSERT_EQ(e.evidence.size(), n);
        ASSERT_EQ(e.distances, (std::vector<int32_t>{static_cast<int32_t>(n) - 1}));
        ASSERT_EQ(e.slices.at("length"), static_cast<double>(n));
      }
}

TEST(Reverse, LengthsAndSymbolsAreUniform) {
  constexpr int kCount = 8000;
  const auto task = make_reverse(5, 14, 10);
  std::vector<double> lengths(15), symbols(6);
  double places = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(8, Split::train, i);
    lengths[e.tokens.size()]++;
    for (const int32_t token : e.tokens) symbols[static_cast<size_t>(token)]++;
    places += static_cast<double>(e.tokens.size());
  }
  for (size_t n = 0; n < lengths.size(); n++) {  // five deviations of a binomial count
    const double p = n >= 10 ? 0.2 : 0;
    EXPECT_LE(std::abs(lengths[n] - kCount * p), 5 * std::sqrt(kCount * p * (1 - p))) << n;
  }
  for (size_t s = 0; s < symbols.size(); s++) {
    const double p = s >= 1 ? 0.2 : 0;
    EXPECT_LE(std::abs(symbols[s] - places * p), 5 * std::sqrt(places * p * (1 - p))) << s;
  }
}

TEST(Reverse, ShapeAndScores) {
  const auto task = make_reverse(128, 3, 3);
  const TaskShape shape = task->shape();
  EXPECT_EQ(shape.length, 3);
  EXPECT_EQ(shape.outputs, 3);
  EXPECT_EQ(shape.vocab, 129);
  EXPECT_EQ(shape.classes, 128);
  EXPECT_DOUBLE_EQ(task->chance(), std::pow(129, -4));
  EXPECT_DOUBLE_EQ(make_reverse(128, 4, 3)->chance(), (std::pow(129, -4) + std::pow(129, -5)) / 2);
  // The first of three symbols is the last in one source of 128.
  const double p = 1.0 / 128;
  constexpr int64_t kCount = 20000;
  EXPECT_NEAR(score_of(task->shortcuts(1, 100, kCount), "copy the source"), p,
              5 * std::sqrt(p / kCount));
}

TEST(Reverse, BadParametersAreClearErrors) {
  const auto message = [](int64_t symbols, int64_t length, int64_t min_length) -> std::string {
    return fault_of([&] { make_reverse(symbols, length, min_length); });
  };
  EXPECT_TRUE(says(message(16, 32, 33), "min_length=33 exceeds length=32"));
  EXPECT_TRUE(says(message(2, 32, 19), "524288 different inputs"));
  EXPECT_EQ(message(2, 32, 20), "");
  EXPECT_EQ(message(2, 39, 0), "");  // the shorter half is 20, rounded up
}

// sort against counting how often each number stands in the source, and its scores against their
// closed forms.

std::unique_ptr<Task> make_sort(int64_t symbols, int64_t length, int64_t min_length = 0) {
  return find_task("sort").build(
      {{"symbols", symbols}, {"length", length}, {"min_length", min_length}});
}

std::vector<int32_t> solved(const Example& e, int64_t symbols) {
  std::vector<int32_t> output;
  for (int32_t number = 0; number < symbols; number++)
    output.insert(output.end(),
                  static_cast<size_t>(std::count(e.tokens.begin(), e.tokens.end(), number + 1)),
                  number);
  return output;
}

TEST(Sort, TheOutputHoldsEachNumberAsOftenAsTheSource) {
  for (const auto& task : {make_sort(16, 32), make_sort(2, 50, 20), make_sort(1100, 7, 2)})
    for (const Split split : {Split::train, Split::test})
      for (int64_t i = 0; i < 200; i++) {
        const Example e = task->example(3, split, i);
        ASSERT_EQ(e.target, solved(e, task->params().integer("symbols")));
        ASSERT_EQ(e.evidence.size(), e.tokens.size());
        ASSERT_EQ(e.distances[0], static_cast<int32_t>(e.tokens.size()) - 1);
      }
}

TEST(Sort, NumbersRepeatAsUniformDrawsDo) {
  constexpr int kCount = 4000;
  const auto task = make_sort(16, 24, 24);
  double alike = 0;  // neighbours of the source that are equal: one in 16
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::validation, i);
    for (size_t p = 1; p < e.tokens.size(); p++) alike += e.tokens[p] == e.tokens[p - 1];
  }
  const double pairs = 23.0 * kCount, p = 1.0 / 16;
  EXPECT_NEAR(alike, pairs * p, 5 * std::sqrt(pairs * p * (1 - p)));
}

TEST(Sort, ShapeAndScores) {
  const auto task = make_sort(128, 3, 3);
  EXPECT_EQ(task->shape().outputs, 3);
  EXPECT_EQ(task->shape().classes, 128);
  EXPECT_DOUBLE_EQ(task->chance(), std::pow(129, -4));
  // Of the 128³ sources, as many are sorted as there are multisets of three numbers.
  const double p = 130.0 * 129 * 128 / 6 / (128.0 * 128 * 128);
  constexpr int64_t kCount = 20000;
  EXPECT_NEAR(score_of(task->shortcuts(1, 100, kCount), "copy the source"), p,
              5 * std::sqrt(p * (1 - p) / kCount));
  // 20 bits: the even spread is ten zeros and ten ones, C(20, 10) of 2^20 sources.
  const double even = 184756.0 / 1048576;
  EXPECT_NEAR(score_of(make_sort(2, 20, 20)->shortcuts(1, 100, kCount), "evenly spread numbers"),
              even, 5 * std::sqrt(even * (1 - even) / kCount));
}

TEST(Sort, BadParametersAreClearErrors) {
  EXPECT_THROW(make_sort(16, 8, 9), Error);
  EXPECT_THROW(make_sort(16, 8, 4), Error);
  EXPECT_NO_THROW(make_sort(16, 8, 5));
}

}  // namespace
}  // namespace attn::copy_test
