// majority against a count, its bits against fair coins, and what its first bit tells against the
// binomial distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::majority_test {
namespace {

std::unique_ptr<Task> make(int64_t length, int64_t min_length = 0) {
  return find_task("majority").build({{"length", length}, {"min_length", min_length}});
}

int64_t balance(const Example& e) {
  int64_t sum = 0;
  for (const int32_t token : e.tokens) sum += token == 2 ? 1 : -1;
  return sum;
}

TEST(Majority, ACountKnowsEveryLabel) {
  for (const auto& task : {make(127), make(128), make(13), make(60, 20), make(1000)}) {
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
    const auto task = make(length, min_length);
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
  const auto task = make(101);
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
  const std::vector<Shortcut> shortest = make(13)->shortcuts(1, 1000, 4000);
  EXPECT_NEAR(score_of(shortest, "first token"), wanted, 5 * std::sqrt(0.25 / 4000));
  const std::vector<Shortcut> usual = make(127)->shortcuts(1, 1000, 1000);
  EXPECT_GT(score_of(usual, "bag of tokens"), 0.97);
  EXPECT_LT(score_of(usual, "first token"), 0.5 + 5 * std::sqrt(0.25 / 1000) + 0.036);
}

TEST(Majority, BadParametersAreClearErrors) {
  EXPECT_THROW(make(12), Error);
  try {
    make(40, 40);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no odd number from min_length=40 to length=40"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(make(40, 11), Error);
  EXPECT_NO_THROW(make(40, 39));
}

}  // namespace
}  // namespace attn::majority_test
