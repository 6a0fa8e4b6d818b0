// mqar's settings beyond one size: several passes, Based's mixture, the presets, other lengths.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"

namespace attn::mqar_settings_test {
namespace {

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
}  // namespace attn::mqar_settings_test
