// counter against counts of tokens; its blocks against a renewal process, its shuffled brackets
// against one walk for each type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <array>
#include <map>
#include <string>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::counter_test {
namespace {

std::unique_ptr<Task> make_blocks(int64_t longest, int64_t length) {
  return find_task("counter").build(
      {{"language", std::string("anbn")}, {"longest", longest}, {"length", length}});
}

std::unique_ptr<Task> make_shuffle(int64_t counters, int64_t length) {
  return find_task("counter").build(
      {{"language", std::string("shuffle")}, {"counters", counters}, {"length", length}});
}

// How many tokens of this kind end at a position.
int64_t run_to(const std::vector<int32_t>& tokens, int64_t position, int32_t kind) {
  int64_t count = 0;
  while (position >= 0 && tokens[static_cast<size_t>(position)] == kind) count++, position--;
  return count;
}

struct Block {
  int64_t n, begin;
  bool operator==(const Block&) const = default;
};

// The whole blocks, with a check of what stands between them and of the labels of each.
std::vector<Block> blocks_of(const Example& e, int64_t longest) {
  std::vector<Block> blocks;
  std::vector<int32_t> scored(e.target.size());
  for (int64_t i = 0; i < std::ssize(e.tokens); i++) {
    const auto at = static_cast<size_t>(i);
    const int64_t bs = run_to(e.tokens, i, 2), as = run_to(e.tokens, i - bs, 1);
    EXPECT_LE(bs, as) << i;
    EXPECT_LE(as, longest) << i;
    EXPECT_LE(run_to(e.tokens, i, 3), 1) << i;
    if (e.tokens[at] == 1 && i > 0 && e.tokens[at - 1] == 2) {
      EXPECT_EQ(e.target[at - 1], 1) << i;
    }
    if (e.target[at] != kIgnoredLabel) {
      EXPECT_EQ(e.tokens[at], 2) << i;
      EXPECT_EQ(e.target[at], as == bs) << i;
      EXPECT_EQ(e.distances[at], as + bs - 1) << i;
      scored[static_cast<size_t>(i - as - bs + 1)]++;
    } else {
      EXPECT_EQ(e.distances[at], -1) << i;
      EXPECT_FALSE(bs > 0 && as == bs) << i;
    }
    if (bs > 0 && as == bs) blocks.push_back({as, i - as - bs + 1});
  }
  for (const auto& [n, begin] : blocks) {
    EXPECT_EQ(scored[static_cast<size_t>(begin)], n > 1 ? 2 : 1);
    scored[static_cast<size_t>(begin)] = 0;
  }
  EXPECT_EQ(std::count(scored.begin(), scored.end(), 0), std::ssize(scored));  // no others
  return blocks;
}

TEST(Counter, CountsOfBothLettersKnowEveryLabel) {
  for (const auto& [longest, length, count] :
       {std::array<int64_t, 3>{24, 128, 10000}, {5, 60, 1000}, {300, 1500, 100}}) {
    const auto task = make_blocks(longest, length);
    EXPECT_TRUE(task->shape().per_token && task->shape().causal);
    for (int64_t i = 0; i < count; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      int64_t largest = 0;
      for (const Block& block : blocks_of(e, longest)) largest = std::max(largest, block.n);
      ASSERT_EQ(e.slices.at("largest"), static_cast<double>(largest));
      ASSERT_FALSE(HasFailure()) << "example " << i;
    }
  }
}

// The expected number of whole blocks of each n in an example: a block starts at a place with odds
// that follow from those of the places before it.
std::vector<double> expected_blocks(int64_t longest, int64_t length) {
  const auto sizes = static_cast<double>(longest);
  std::vector<double> starts(static_cast<size_t>(length + 2)), result(starts.size());
  std::vector<double> ready(starts.size());  // odds that a blank or a block comes next
  ready[0] = 1;
  for (int64_t i = 0; i < length; i++) {
    const auto at = static_cast<size_t>(i);
    starts[at] += ready[at] / 2;
    starts[at + 1] += ready[at] / 2;
    for (int64_t n = 1; n <= longest && i + 2 * n <= length; n++) {
      ready[static_cast<size_t>(i + 2 * n)] += starts[at] / sizes;
      result[static_cast<size_t>(n)] += starts[at] / sizes;
    }
  }
  return result;
}

TEST(Counter, BlocksAreARenewalProcessAndPlacesTellNothing) {
  constexpr int64_t kLongest = 8, kLength = 80, kCount = 4000;
  const auto task = make_blocks(kLongest, kLength);
  std::vector<double> counts(kLongest + 1), other(kLongest + 1);
  double even_ends = 0, ends = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    for (const auto& [n, begin] : blocks_of(e, kLongest)) {
      counts[static_cast<size_t>(n)]++;
      ends++;
      even_ends += (begin + 2 * n - 1) % 2 == 0;
      if (n < kLongest) continue;
      for (int64_t j = 1; j < n; j++)
        other[static_cast<size_t>(j)] += e.target[static_cast<size_t>(begin + n + j - 1)] == 0;
    }
  }
  const std::vector<double> expected = expected_blocks(kLongest, kLength);
  for (size_t n = 1; n <= kLongest; n++)  // of one n there are few in an example: as if independent
    EXPECT_LT(std::abs(counts[n] - kCount * expected[n]), 5 * std::sqrt(kCount * expected[n])) << n;
  EXPECT_LT(std::abs(even_ends - ends / 2), 5 * std::sqrt(ends / 4));
  for (size_t j = 1; j < kLongest; j++) {
    const double mean = counts[kLongest] / (kLongest - 1);
    EXPECT_LT(std::abs(other[j] - mean), 5 * std::sqrt(mean)) << j;
  }
}

// So many b's are the last ones of a block, or the other one of a longer block; whichever is more.
TEST(Counter, TheNumberOfBsTellsALittle) {
  constexpr int64_t kLongest = 24, kLength = 128, kTest = 3000;
  const std::vector<double> blocks = expected_blocks(kLongest, kLength);
  double right = 0, labels = 0, ends = 0;
  for (size_t j = 1; j <= kLongest; j++) {
    double others = 0;
    for (size_t n = j + 1; n <= kLongest; n++) others += blocks[n] / static_cast<double>(n - 1);
    right += std::max(blocks[j], others);
    labels += blocks[j] + others;
    ends += blocks[j];
  }
  const std::vector<Shortcut> shortcuts = make_blocks(kLongest, kLength)->shortcuts(1, 3000, kTest);
  const double error = std::sqrt(0.25 / (labels * kTest));
  EXPECT_NEAR(score_of(shortcuts, "b's since the last a"), right / labels, 5 * error);
  EXPECT_NEAR(score_of(shortcuts, "majority"), ends / labels, 5 * error);
  EXPECT_LT(score_of(shortcuts, "position"), 0.56);  // 0.8 without blanks
}

TEST(Counter, SumsOfBracketsKnowEverySet) {
  for (const auto& [counters, length, count] :
       {std::array<int64_t, 3>{3, 128, 10000}, {2, 40, 1000}, {6, 200, 300}}) {
    const auto task = make_shuffle(counters, length);
    EXPECT_EQ(task->shape().classes, int64_t{1} << counters);
    for (int64_t i = 0; i < count; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      std::vector<int32_t> sums(static_cast<size_t>(counters)), since(sums.size());
      int32_t largest = 0;
      for (int32_t p = 0; p < length; p++) {
        const int32_t token = e.tokens[static_cast<size_t>(p)] - 1;
        const auto type = static_cast<size_t>(token % counters);
        if (sums[type] == 0) since[type] = p + 1;  // 0: has not occurred
        sums[type] += token < counters ? 1 : -1;
        ASSERT_GE(sums[type], 0);
        largest = std::max(largest, sums[type]);
        int32_t set = 0, first = p;
        for (size_t t = 0; t < sums.size(); t++) {
          set += (sums[t] > 0) * (1 << t);
          if (since[t] > 0) first = std::min(first, since[t] - 1);
        }
        ASSERT_EQ(e.target[static_cast<size_t>(p)], set);
        ASSERT_EQ(e.distances[static_cast<size_t>(p)], p - first);
      }
      ASSERT_EQ(e.slices.at("largest"), largest);
    }
  }
}

// What is known of one type after so many of its symbols: [its last one: none, open, close][open?].
using Known = std::array<std::array<double, 2>, 3>;

std::vector<Known> one_type(size_t most) {
  std::vector<double> odds = {1};  // by the count
  std::vector<Known> result = {{{{1, 0}, {0, 0}, {0, 0}}}};
  for (size_t s = 1; s <= most; s++) {
    std::vector<double> next(odds.size() + 1);
    Known known{};
    for (size_t c = 0; c < odds.size(); c++) {
      const double up = c == 0 ? 1 : 0.4;
      next[c + 1] += odds[c] * up;
      known[1][1] += odds[c] * up;
      if (c == 0) continue;
      next[c - 1] += odds[c] * (1 - up);
      known[2][c > 1] += odds[c] * (1 - up);
    }
    odds = next;
    result.push_back(known);
  }
  return result;
}

// Of two types, by their last symbols and by the set, after a number of symbols.
std::map<size_t, std::array<double, 4>> two_types(size_t symbols) {
  const std::vector<Known> one = one_type(symbols);
  std::map<size_t, std::array<double, 4>> result;
  double ways = std::pow(0.5, symbols);  // that the first type has `first` of the symbols
  for (size_t first = 0; first <= symbols; first++) {
    for (size_t key = 0; key < 9; key++)
      for (size_t set = 0; set < 4; set++)
        result[key][set] +=
            ways * one[first][key / 3][set & 1] * one[symbols - first][key % 3][set >> 1];
    ways *= static_cast<double>(symbols - first) / static_cast<double>(first + 1);
  }
  return result;
}

TEST(Counter, SetsHaveTheSharesOfTwoWalks) {
  constexpr int64_t kCount = 10000;
  const auto task = make_shuffle(2, 64);
  std::map<size_t, std::array<double, 4>> counts;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    for (const size_t p : {0, 1, 2, 12, 63}) counts[p][static_cast<size_t>(e.target[p])]++;
  }
  for (const auto& [p, found] : counts) {
    std::array<double, 4> shares{};
    for (const auto& [key, sets] : two_types(p + 1))
      for (size_t set = 0; set < 4; set++) shares[set] += sets[set];
    for (size_t set = 0; set < 4; set++)
      EXPECT_LE(std::abs(found[set] - kCount * shares[set]),
                5 * std::sqrt(kCount * shares[set] * (1 - shares[set])) + 1e-9)
          << p << ' ' << set;
  }
}

TEST(Counter, TheLastSymbolsTellALittle) {
  constexpr int64_t kTest = 3000, kLength = 64;
  std::map<size_t, std::array<double, 4>> sums;
  for (size_t symbols = 1; symbols <= kLength; symbols++)
    for (const auto& [key, sets] : two_types(symbols))
      for (size_t set = 0; set < 4; set++) sums[key][set] += sets[set] / kLength;
  double right = 0;
  for (const auto& [key, sets] : sums) right += *std::max_element(sets.begin(), sets.end());
  const double score =
      score_of(make_shuffle(2, kLength)->shortcuts(1, 3000, kTest), "last bracket of each type");
  EXPECT_NEAR(score, right, 5 * std::sqrt(0.25 / kTest));  // as if all labels of one were alike
}

// The shortcut against texts of the last eight brackets of each type.
TEST(Counter, TheLatestBracketsOfEachTypeTellMore) {
  constexpr int64_t kTrain = 800, kTest = 400;
  const auto task = make_shuffle(3, 64);
  const auto walk = [&](Split split, int64_t count, const auto& look) {
    for (int64_t i = 0; i < count; i++) {
      const Example e = task->example(1, split, i);
      std::array<std::string, 3> latest;
      for (size_t p = 0; p < e.tokens.size(); p++) {
        std::string& own = latest[static_cast<size_t>((e.tokens[p] - 1) % 3)];
        own += e.tokens[p] <= 3 ? '(' : ')';
        if (own.size() > 8) own.erase(0, 1);
        look(e.target[p], latest);
      }
    }
  };
  std::map<std::string, int> votes;
  walk(Split::train, kTrain, [&](int32_t set, const auto& latest) {
    for (size_t t = 0; t < 3; t++) votes[latest[t]] += (set & (1 << t)) != 0 ? 1 : -1;
  });
  double right = 0, labels = 0;
  walk(Split::test, kTest, [&](int32_t set, const auto& latest) {
    bool all = true;
    for (size_t t = 0; t < 3; t++) all = all && (votes[latest[t]] > 0) == ((set & (1 << t)) != 0);
    right += all;
    labels++;
  });
  const std::vector<Shortcut> found = task->shortcuts(1, kTrain, kTest);
  EXPECT_DOUBLE_EQ(score_of(found, "last 8 brackets of each type"), right / labels);
  EXPECT_GT(score_of(found, "last 8 brackets of each type"),
            score_of(found, "last bracket of each type") + 0.2);
}

TEST(Counter, BadParametersAreClearErrors) {
  EXPECT_TRUE(says(fault_of([&] { make_blocks(64, 128); }),
                   "counter: longest=64 makes a blank and a block of 128 symbols"));
  EXPECT_TRUE(says(fault_of([&] { make_blocks(8, 40); }), "length=40 with longest=8"));
  EXPECT_TRUE(says(fault_of([&] { make_shuffle(2, 19); }), "19 places of 2 symbols"));
  EXPECT_TRUE(says(fault_of([&] { make_shuffle(7, 64); }), "counters"));
  EXPECT_TRUE(says(
      fault_of([&] {
        find_task("counter").build({{"language", std::string("anbn")}, {"counters", int64_t{2}}});
      }),
      "counters"));
}

}  // namespace
}  // namespace attn::counter_test
