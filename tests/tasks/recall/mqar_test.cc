// Recall of many pairs: mqar and its settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::mqar_test {
namespace {

// mqar against a scan for each key, and its gaps against the power law computed in double.

std::unique_ptr<Task> make(int64_t vocab, int64_t pairs, int64_t length, double power,
                           bool random_non_queries = true) {
  return find_task("mqar").build({{"vocab", vocab},
                                  {"pairs", pairs},
                                  {"length", length},
                                  {"power", power},
                                  {"random_non_queries", random_non_queries}});
}

TEST(Mqar, EveryKeyIsAskedOnceAndItsLabelIsFoundByAScan) {
  for (const auto& task :
       {make(64, 4, 64, 1), make(20, 9, 36, 0.01), make(31, 3, 40, 2.5, false)}) {
    const auto n = static_cast<size_t>(task->params().integer("pairs"));
    const int64_t vocab = task->params().integer("vocab");
    for (int64_t i = 0; i < 200; i++) {
      const Example e = task->example(9, Split::validation, i);
      std::multiset<int32_t> asked;
      std::vector<double> gaps;
      for (size_t p = 0; p < e.target.size(); p++) {
        if (e.target[p] == kIgnoredLabel) {
          ASSERT_EQ(e.distances[p], -1);
          continue;
        }
        ASSERT_GE(p, 2 * n);
        ASSERT_EQ(p % 2, 0u);
        size_t found = p;
        for (size_t q = 0; q < 2 * n; q += 2)
          if (e.tokens[q] == e.tokens[p]) found = q;
        ASSERT_LT(found, p);
        ASSERT_EQ(e.target[p], e.tokens[found + 1]);
        gaps.push_back(static_cast<double>(p - (found + 1)));
        ASSERT_EQ(e.distances[p], gaps.back());
        asked.insert(e.tokens[p]);
      }
      std::set<int32_t> keys, values;
      for (size_t q = 0; q < 2 * n; q += 2) {
        keys.insert(e.tokens[q]);
        values.insert(e.tokens[q + 1]);
      }
      ASSERT_EQ(keys.size(), n);
      ASSERT_EQ(values.size(), n);
      ASSERT_TRUE(std::equal(asked.begin(), asked.end(), keys.begin(), keys.end()));
      ASSERT_GE(*keys.begin(), 1);
      ASSERT_LT(*keys.rbegin(), vocab / 2);
      ASSERT_GE(*values.begin(), vocab / 2);
      ASSERT_LT(*values.rbegin(), vocab);
      double sum = 0;
      for (const double gap : gaps) sum += gap;
      ASSERT_NEAR(e.slices.at("mean_gap"), sum / static_cast<double>(n), 1e-9);
      ASSERT_EQ(e.slices.at("min_gap"), *std::min_element(gaps.begin(), gaps.end()));
      ASSERT_EQ(e.slices.at("max_gap"), *std::max_element(gaps.begin(), gaps.end()));
      ASSERT_EQ(e.evidence.size(), 2 * n);
    }
  }
}

// Chi-square of the slots of the first key, and of the second given that it avoids the first.
TEST(Mqar, SlotsFollowThePowerLawWithoutRepetition) {
  constexpr int kCount = 20000;
  constexpr size_t kSlots = 14;  // (32 − 4)/2
  for (const double a : {0.01, 0.37, 1.0, 3.0}) {
    const auto task = make(16, 2, 32, a);
    std::vector<double> first(kSlots), second(kSlots), p(kSlots);
    for (int64_t i = 0; i < kCount; i++) {
      const Example e = task->example(4, Split::train, i);
      for (size_t s = 0; s < kSlots; s++) {
        const int32_t label = e.target[4 + 2 * s];
        if (label == e.tokens[1]) first[s]++;
        if (label == e.tokens[3]) second[s]++;
      }
    }
    double total = 0, chi_first = 0, chi_second = 0;
    for (size_t s = 0; s < kSlots; s++) total += p[s] = std::pow(static_cast<double>(s + 1), a - 1);
    for (double& weight : p) weight /= total;
    for (size_t s = 0; s < kSlots; s++) {
      double after = 0;
      for (size_t other = 0; other < kSlots; other++)
        if (other != s) after += p[other] * p[s] / (1 - p[other]);
      chi_first += std::pow(first[s] - kCount * p[s], 2) / (kCount * p[s]);
      chi_second += std::pow(second[s] - kCount * after, 2) / (kCount * after);
    }
    const double limit = 13 + 5 * std::sqrt(26.0);  // 13 degrees of freedom, five deviations
    EXPECT_LT(chi_first, limit) << a;
    EXPECT_LT(chi_second, limit) << a;
  }
}

TEST(Mqar, KeysValuesAndFillersAreUniform) {
  const auto task = make(12, 2, 16, 1);  // 5 keys, 6 values, fillers 1..11
  std::map<int32_t, double> keys, values, fillers;
  constexpr int kCount = 6000;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(8, Split::test, i);
    for (const size_t p : {0u, 2u}) {
      keys[e.tokens[p]]++;
      values[e.tokens[p + 1]]++;
    }
    for (size_t p = 5; p < 16; p += 2) fillers[e.tokens[p]]++;  // odd slots are never queries
  }
  EXPECT_EQ(keys.size(), 5u);
  EXPECT_EQ(values.size(), 6u);
  EXPECT_EQ(fillers.size(), 11u);
  for (const auto& [counts, draws] :
       {std::pair{keys, 2.0}, std::pair{values, 2.0}, std::pair{fillers, 6.0}}) {
    const double mean = kCount * draws / static_cast<double>(counts.size());
    for (const auto& [token, count] : counts)
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << token;
  }
}

TEST(Mqar, BlanksHaveATokenOfTheirOwn) {
  const auto task = make(32, 4, 24, 1, false);
  EXPECT_EQ(task->shape().vocab, 33);
  EXPECT_EQ(task->shape().classes, 32);
  const Example e = task->example(1, Split::train, 0);
  for (size_t p = 8; p < 24; p++) EXPECT_EQ(e.tokens[p] == 32, e.target[p] == kIgnoredLabel) << p;
  EXPECT_EQ(make(32, 4, 24, 1)->shape().vocab, 32);
}

TEST(Mqar, ShapeAndShortcuts) {
  const auto task = make(64, 4, 64, 1);
  EXPECT_TRUE(task->shape().causal);
  EXPECT_TRUE(task->shape().per_token);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 64);
  const std::vector<Shortcut> uniform = task->shortcuts(1, 2000, 1000);
  EXPECT_NEAR(score_of(uniform, "majority"), 1.0 / 32, 0.015);  // values: half the vocabulary
  EXPECT_DOUBLE_EQ(score_of(uniform, "random context value"), 0.25);
  EXPECT_NEAR(score_of(uniform, "likeliest pair"), 0.25, 0.03);  // uniform slots tell no pair
  const std::vector<Shortcut> early = make(64, 4, 64, 0.01)->shortcuts(1, 2000, 1000);
  EXPECT_GT(score_of(early, "likeliest pair"), 0.265);  // the first pair is asked first
  // A query at 8, 10, …, 62 sees its pair within 16 tokens when both lie in p - 15 .. p - 1: four
  // pairs up to 14, and one fewer at 16, 18 and 20; what is left is a guess.
  const double seen = (4 * 4 + 3 + 2 + 1) / (4 * 28.0);
  EXPECT_NEAR(score_of(uniform, "window of 16 (best)"), seen + (1 - seen) / 32, 0.03);
  EXPECT_GT(score_of(early, "window of 16 (best)"), 2 * seen);
}

TEST(Mqar, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t pairs, int64_t length) -> std::string {
    return fault_of([&] { make(vocab, pairs, length, 1); });
  };
  EXPECT_TRUE(says(message(64, 4, 63), "length=63 must be even"));
  EXPECT_TRUE(says(message(64, 4, 14), "at least 16, got length=14"));
  EXPECT_TRUE(says(message(8, 4, 64), "3 keys, fewer than pairs=4"));
  EXPECT_EQ(message(10, 4, 16), "");
  const auto twice = [](int64_t length) {
    find_task("mqar").build({{"pairs", 4}, {"length", length}, {"passes", 2}});
  };
  EXPECT_THROW(twice(22), Error);
  EXPECT_NO_THROW(twice(24));
}

// mqar's settings beyond one size: several passes, Based's mixture, the presets, other lengths.

TEST(Mqar, SeveralPassesListTheSamePairsAgain) {
  const auto task = find_task("mqar").build(
      {{"vocab", 40}, {"pairs", 3}, {"length", 32}, {"passes", 3}, {"power", 1.0}});
  std::set<size_t> asked_at;
  for (int64_t i = 0; i < 300; i++) {
    const Example e = task->example(2, Split::test, i);
    for (size_t p = 0; p < 12; p++) ASSERT_EQ(e.tokens[p], e.tokens[p + 6]);
    int asked = 0;
    for (size_t p = 0; p < 32; p++) {
      if (e.target[p] == kIgnoredLabel) continue;
      asked++;
      asked_at.insert(p);
      size_t found = 0;
      for (size_t q = 0; q < 18; q += 2)
        if (e.tokens[q] == e.tokens[p]) found = q;
      ASSERT_EQ(e.tokens[found], e.tokens[p]);
      ASSERT_EQ(e.target[p], e.tokens[found + 1]);
      ASSERT_EQ(e.distances[p], p - (found + 1));
    }
    ASSERT_EQ(asked, 3);
    ASSERT_EQ(e.evidence.size(), 18u);
  }
  EXPECT_EQ(asked_at, (std::set<size_t>{18, 20, 22, 24, 26, 28, 30}));
}

TEST(Mqar, AMixtureHasBasedsSizesInItsRatio) {
  const auto of = [](int64_t length, int64_t pairs) {
    return find_task("mqar").build({{"vocab", 1000},
                                    {"mixture", std::string("zoology")},
                                    {"length", length},
                                    {"pairs", pairs}});
  };
  const auto task = of(300, 64);
  EXPECT_EQ(task->shape().length, 300);
  std::map<std::pair<size_t, size_t>, double> counts;
  constexpr double kCount = 3600;
  for (int64_t i = 0; i < static_cast<int64_t>(kCount); i++) {
    const Example e = task->example(5, Split::train, i);
    size_t pairs = 0;
    for (size_t p = 0; p < e.target.size(); p++) {
      if (e.target[p] == kIgnoredLabel) continue;
      ASSERT_LT(p, e.tokens.size());
      pairs++;
    }
    ASSERT_EQ(e.target.size(), 300u);
    ASSERT_EQ(e.slices.at("length"), e.tokens.size());
    ASSERT_EQ(e.slices.at("pairs"), pairs);
    ASSERT_EQ(e.evidence.size(), 2 * pairs);
    counts[{e.tokens.size(), pairs}]++;
  }
  const std::map<std::pair<size_t, size_t>, double> shares = {
      {{64, 4}, 5}, {{128, 8}, 1}, {{256, 16}, 1}, {{256, 32}, 1}, {{256, 64}, 1}};
  ASSERT_EQ(counts.size(), shares.size());
  for (const auto& [size, share] : shares)
    EXPECT_NEAR(counts[size], kCount * share / 9, 5 * std::sqrt(kCount * share / 9)) << size.second;
  std::set<size_t> sizes;
  const auto smaller = of(256, 8);
  for (int64_t i = 0; i < 100; i++) sizes.insert(smaller->example(5, Split::test, i).tokens.size());
  EXPECT_EQ(sizes, (std::set<size_t>{64, 128}));
  for (const auto& [length, pairs] : {std::pair{62, 4}, std::pair{64, 3}})
    EXPECT_THROW(of(length, pairs), Error);
}

TEST(Mqar, PresetsAreThoseOfTheLiterature) {
  for (const auto& [name, pairs] : {std::pair{"zoology-64", 4}, std::pair{"zoology-128", 8},
                                    std::pair{"zoology-256", 16}, std::pair{"zoology-512", 64}}) {
    const auto task = find_task("mqar").build({{"preset", std::string(name)}});
    EXPECT_EQ(fmt::format("zoology-{}", task->shape().length), name);
    EXPECT_EQ(task->params().integer("pairs"), pairs);
    EXPECT_EQ(task->shape().vocab, 8193);
  }
  EXPECT_EQ(find_task("mqar").build({{"preset", std::string("based")}})->shape().length, 256);
}

// More positions to be asked at, the same pairs: what a model of one length is tested on.
TEST(Mqar, LengthIsFree) {
  for (const int64_t length : {16, 64, 256}) {
    const auto task = find_task("mqar").build({{"vocab", 32}, {"pairs", 4}, {"length", length}});
    EXPECT_EQ(task->shape().vocab, 32);
    EXPECT_EQ(std::ssize(task->example(1, Split::test, 0).tokens), length);
  }
}

}  // namespace
}  // namespace attn::mqar_test
