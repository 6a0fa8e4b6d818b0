// Probes of bits: majority and parity.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::parity_test {
namespace {

// majority against a count, its bits against fair coins, and what its first bit tells against the
// binomial distribution.

std::unique_ptr<Task> make_majority(int64_t length, int64_t min_length = 0) {
  return find_task("majority").build({{"length", length}, {"min_length", min_length}});
}

int64_t balance(const Example& e) {
  int64_t sum = 0;
  for (const int32_t token : e.tokens) sum += token == 2 ? 1 : -1;
  return sum;
}

TEST(Majority, ACountKnowsEveryLabel) {
  for (const auto& task : {make_majority(127), make_majority(128), make_majority(13),
                           make_majority(60, 20), make_majority(1000)}) {
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(e.tokens.size() % 2, 1u);
      for (const int32_t token : e.tokens) ASSERT_TRUE(token == 1 || token == 2);
      ASSERT_EQ(e.target, std::vector<int32_t>{balance(e) > 0});
      ASSERT_EQ(e.evidence.size(), e.tokens.size());
      ASSERT_EQ(e.distances, std::vector{static_cast<int32_t>(e.tokens.size() - 1)});
      ASSERT_EQ(e.slices.at("length"), static_cast<double>(e.tokens.size()));
      ASSERT_EQ(e.slices.at("margin"), static_cast<double>(std::abs(balance(e))));
    }
  }
}

TEST(Majority, LengthsAreOddAndUniform) {
  for (const auto& [length, min_length, low, high] :
       {std::array<int64_t, 4>{127, 0, 127, 127}, {128, 0, 127, 127}, {40, 20, 21, 39}}) {
    const auto task = make_majority(length, min_length);
    EXPECT_EQ(task->shape().length, length);
    std::map<int64_t, double> lengths;
    constexpr int kCount = 2000;
    for (int64_t i = 0; i < kCount; i++)
      lengths[std::ssize(task->example(5, Split::train, i).tokens)]++;
    EXPECT_EQ(lengths.begin()->first, low);
    EXPECT_EQ(lengths.rbegin()->first, high);
    EXPECT_EQ(std::ssize(lengths), (high - low) / 2 + 1);
    const double mean = kCount / static_cast<double>(lengths.size());
    for (const auto& [n, count] : lengths)
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << n;
  }
}

TEST(Majority, BitsAreFairAndNoPositionIsAlike) {
  const auto task = make_majority(101);
  constexpr int kCount = 2000;
  std::vector<double> ones(101);
  double labels = 0, squares = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    for (size_t p = 0; p < 101; p++) ones[p] += e.tokens[p] == 2;
    labels += e.target[0];
    squares += static_cast<double>(balance(e) * balance(e));
  }
  const double deviation = std::sqrt(kCount / 4.0);
  for (size_t p = 0; p < 101; p++) EXPECT_LT(std::abs(ones[p] - kCount / 2.0), 5 * deviation) << p;
  EXPECT_LT(std::abs(labels - kCount / 2.0), 5 * deviation);
  // Independent bits: the square of the balance is 101 on average, with variance 2·101·100.
  EXPECT_NEAR(squares / kCount, 101, 5 * std::sqrt(2.0 * 101 * 100 / kCount));
}

// The other 12 bits are even with odds C(12, 6)/2^12, and then the first one decides; else it is on
// either side by even odds.
TEST(Majority, TheFirstBitTellsLittleAndTheBagAll) {
  const double wanted = 0.5 + 0.5 * 924 / 4096;
  const std::vector<Shortcut> shortest = make_majority(13)->shortcuts(1, 1000, 4000);
  EXPECT_NEAR(score_of(shortest, "first token"), wanted, 5 * std::sqrt(0.25 / 4000));
  const std::vector<Shortcut> usual = make_majority(127)->shortcuts(1, 1000, 1000);
  EXPECT_GT(score_of(usual, "bag of tokens"), 0.97);
  EXPECT_LT(score_of(usual, "first token"), 0.5 + 5 * std::sqrt(0.25 / 1000) + 0.036);
}

TEST(Majority, BadParametersAreClearErrors) {
  EXPECT_THROW(make_majority(12), Error);
  EXPECT_TRUE(says(fault_of([&] { make_majority(40, 40); }),
                   "no odd number from min_length=40 to length=40"));
  EXPECT_THROW(make_majority(40, 11), Error);
  EXPECT_NO_THROW(make_majority(40, 39));
}

// parity against a running exclusive or; every bit decides, and what a threshold
// on their sum tells is a binomial coefficient.

std::unique_ptr<Task> make_parity(int64_t length, int64_t min_length = 0, bool per_token = false) {
  return find_task("parity").build(
      {{"length", length}, {"min_length", min_length}, {"per_token", per_token}});
}

// The parity of each prefix.
std::vector<int32_t> solve(const std::vector<int32_t>& tokens) {
  std::vector<int32_t> prefix;
  int32_t state = 0;
  for (const int32_t token : tokens) prefix.push_back(state ^= token - 1);
  return prefix;
}

TEST(Parity, ARunningExclusiveOrKnowsEveryLabel) {
  for (const auto& task : {make_parity(32), make_parity(40, 12), make_parity(500),
                           make_parity(32, 0, true), make_parity(40, 12, true)}) {
    const bool per_token = task->params().flag("per_token");
    EXPECT_EQ(task->shape().per_token, per_token);
    EXPECT_EQ(task->shape().causal, per_token);
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      const std::vector<int32_t> prefix = solve(e.tokens);
      double ones = 0;
      for (const int32_t token : e.tokens) ones += token == 2;
      ASSERT_EQ(e.slices.at("ones"), ones);
      ASSERT_EQ(e.slices.at("length"), static_cast<double>(e.tokens.size()));
      ASSERT_EQ(e.evidence.size(), e.tokens.size());
      if (!per_token) {
        ASSERT_EQ(e.target, std::vector<int32_t>{prefix.back()});
        ASSERT_EQ(e.distances, std::vector{static_cast<int32_t>(e.tokens.size() - 1)});
        continue;
      }
      for (size_t p = 0; p < e.target.size(); p++) {
        const bool inside = p < prefix.size();
        ASSERT_EQ(e.target[p], inside ? prefix[p] : kIgnoredLabel);
        ASSERT_EQ(e.distances[p], inside ? static_cast<int32_t>(p) : -1);
      }
    }
  }
}

TEST(Parity, EveryBitDecides) {
  const auto task = make_parity(32);
  for (int64_t i = 0; i < 300; i++) {
    Example e = task->example(3, Split::test, i);
    int32_t& bit = e.tokens[static_cast<size_t>(i % 32)];
    bit = 3 - bit;
    ASSERT_NE(solve(e.tokens).back(), e.target[0]);
  }
}

TEST(Parity, BitsAndLabelsAreFairAndLengthsUniform) {
  const auto task = make_parity(31, 12);  // 20 lengths
  constexpr int kCount = 4000;
  std::map<size_t, double> lengths;
  double ones = 0, bits = 0, labels = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    lengths[e.tokens.size()]++;
    ones += e.slices.at("ones");
    bits += e.slices.at("length");
    labels += e.target[0];
  }
  EXPECT_EQ(lengths.size(), 20u);
  EXPECT_EQ(lengths.begin()->first, 12u);
  EXPECT_EQ(lengths.rbegin()->first, 31u);
  for (const auto& [n, count] : lengths)
    EXPECT_LT(std::abs(count - kCount / 20.0), 5 * std::sqrt(kCount / 20.0)) << n;
  EXPECT_LT(std::abs(ones - bits / 2), 5 * std::sqrt(bits / 4));
  EXPECT_LT(std::abs(labels - kCount / 2.0), 5 * std::sqrt(kCount / 4.0));
}

// Even less odd numbers of ones up to k: (-1)^k·C(n-1, k) of 2^n, so that a threshold is right with
// odds 0.5 + C(31, 15)/2^32 at best; a part of the bits is worth nothing.
TEST(Parity, AThresholdIsTheBestShortcut) {
  constexpr int kTest = 4000;
  const double deviation = std::sqrt(0.25 / kTest), best = 0.5 + 300540195 / 4294967296.0;
  const std::vector<Shortcut> shortcuts = make_parity(32)->shortcuts(1, 4000, kTest);
  EXPECT_NEAR(score_of(shortcuts, "threshold on the ones"), best, 5 * deviation);
  for (const Shortcut& s : shortcuts) EXPECT_LT(s.score, best + 5 * deviation) << s.name;
  for (const char* const name : {"first token", "window of 16 (best)"})
    EXPECT_LT(std::abs(score_of(shortcuts, name) - 0.5), 5 * deviation) << name;
}

// The first label is its own bit; every other one is a coin whatever the bit.
TEST(Parity, OfRunningParitiesTheFirstIsKnown) {
  EXPECT_NEAR(score_of(make_parity(32, 0, true)->shortcuts(1, 500, 2000), "token there"),
              0.5 + 0.5 / 32, 5 * std::sqrt(0.25 / (32 * 2000)));
}

TEST(Parity, BadParametersAreClearErrors) {
  EXPECT_THROW(make_parity(11), Error);
  EXPECT_TRUE(says(fault_of([&] { make_parity(40, 41); }), "min_length=41"));
  EXPECT_THROW(make_parity(40, 11), Error);
  EXPECT_NO_THROW(make_parity(40, 12));
}

}  // namespace
}  // namespace attn::parity_test
