// pathfinder and pathx as tasks: their examples, what their parameters refuse, and what cheap
// predictors get out of them. The labels are tested in snakes/scene_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"

namespace attn::pathfinder_test {
namespace {

std::unique_ptr<Task> make(std::map<std::string, ParamValue> given) {
  return find_task("pathfinder").build(given);
}

TEST(Pathfinder, TokensAreTheGreyLevelsOfTheValues) {
  // The splits are drawn by checksum, so that the two forms of one scene have different indices.
  const auto values = make({{"preset", "small"}, {"inputs", "values"}});
  const auto tokens = make({{"preset", "small"}});
  EXPECT_EQ(values->shape().vocab, 0);
  EXPECT_EQ(tokens->shape().vocab, 257);
  for (int64_t i = 0; i < 100; i++) {
    const Example a = values->any_example(1, Split::train, i);
    const Example b = tokens->any_example(1, Split::train, i);
    ASSERT_EQ(a.values.size(), 256u);
    ASSERT_EQ(a.target, b.target);
    ASSERT_EQ(a.evidence, b.evidence);
    ASSERT_EQ(values->picture(a), tokens->picture(b));
    for (size_t p = 0; p < 256; p++) ASSERT_EQ(values->picture(a)[p] + 1, b.tokens[p]);
    ASSERT_EQ(*std::min_element(b.tokens.begin(), b.tokens.end()), 1);  // no padding
    ASSERT_EQ(*std::max_element(b.tokens.begin(), b.tokens.end()), 256);
  }
}

TEST(Pathfinder, LabelsAreBalancedInEverySplit) {
  const auto task = make({{"preset", "small"}});
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    int ones = 0;
    constexpr int kCount = 800;
    for (int64_t i = 0; i < kCount; i++) ones += task->example(1, split, i).target[0];
    EXPECT_NEAR(ones, kCount / 2, 4 * std::sqrt(kCount) / 2) << to_string(split);
  }
}

TEST(Pathfinder, ValuesAreStandardised) {
  const auto task = make({{"inputs", "values"}});
  double sum = 0, squares = 0, count = 0;
  for (int64_t i = 0; i < 200; i++)
    for (const float v : task->example(1, Split::train, i).values)
      sum += v, squares += v * v, count++;
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.1);
}

// The evidence is bright, and as much of it at either label: accuracy by distance must not be
// accuracy by label.
TEST(Pathfinder, EvidenceIsOnTheStrokesAndTellsNoLabel) {
  const auto task = make({{"contour", 14}});
  double one = 0, two = 0, ones = 0, twos = 0;
  for (int64_t i = 0; i < 200; i++) {
    const Example e = task->example(1, Split::train, i);
    const std::vector<uint8_t> grey = task->picture(e);
    for (const int32_t p : e.evidence) ASSERT_GE(grey[static_cast<size_t>(p)], 40);
    const auto size = static_cast<double>(e.evidence.size());
    if (e.target[0] == 1)
      one += size, ones++;
    else
      two += size, twos++;
  }
  EXPECT_NEAR(two / twos, one / ones, 0.05 * one / ones);
}

TEST(Pathfinder, CheapPredictorsStayNearChance) {
  const auto shortcuts = make({{"preset", "lra"}})->shortcuts(1, 1000, 1000);
  std::set<std::string> names;
  for (const Shortcut& s : shortcuts) {
    names.insert(s.name);
    EXPECT_LT(s.score, 0.60) << s.name;  // 0.5 and five standard errors, with a margin
  }
  for (const char* name :
       {"markers' distance", "markers' places", "mean grey level", "linear pixels"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST(Pathfinder, ImpossibleSettingsAreErrors) {
  EXPECT_THROW(make({{"side", 20}}), Error);
  EXPECT_THROW(make({{"side", 128}}), Error);
  EXPECT_THROW(make({{"side", 16}, {"contour", 30}}), Error);  // no room
  EXPECT_THROW(make({{"data", "/nowhere"}}), Error);
  EXPECT_THROW(find_task("pathx").build({{"side", 32}}), Error);
}

TEST(Pathfinder, DrawingsHaveALineARow) {
  const auto task = make({{"preset", "small"}});
  const std::string text = task->draw(task->example(1, Split::train, 0));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17);
  EXPECT_EQ(task->picture_width(), 16);
}

TEST(Pathx, IsPathfinderAtLength16384) {
  const auto task = find_task("pathx").build({{"preset", "lra"}});
  EXPECT_EQ(task->shape().length, 16384);
  const Example e = task->any_example(1, Split::test, 0);
  EXPECT_EQ(e.tokens.size(), 16384u);
  EXPECT_GT(e.evidence.back() - e.evidence.front(), 128 * 20);  // the tails are 20 pixels apart
}

}  // namespace
}  // namespace attn::pathfinder_test
