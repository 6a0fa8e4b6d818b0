// compression: the labels are the tokens, all of them; counts, and what a window knows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::compression_test {
namespace {

std::unique_ptr<Task> make(int64_t vocab, int64_t length) {
  return find_task("compression").build({{"vocab", vocab}, {"length", length}});
}

TEST(Compression, EveryLabelIsThePositionsToken) {
  for (const auto& [vocab, length] : {std::pair{16, 32}, std::pair{3, 40}, std::pair{128, 9}}) {
    const auto task = make(vocab, length);
    for (int64_t i = 0; i < 150; i++) {
      const Example e = task->example(2, Split::test, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      ASSERT_EQ(e.tokens.back(), vocab);
      ASSERT_EQ(e.target.back(), kIgnoredLabel);
      ASSERT_EQ(e.distances.back(), -1);
      ASSERT_EQ(std::ssize(e.evidence), length - 1);
      for (size_t p = 0; p + 1 < e.tokens.size(); p++) {
        ASSERT_GE(e.tokens[p], 1);
        ASSERT_LT(e.tokens[p], vocab);
        ASSERT_EQ(e.target[p], e.tokens[p]);
        ASSERT_EQ(e.distances[p], length - 1 - static_cast<int64_t>(p));
        ASSERT_EQ(e.evidence[p], static_cast<int32_t>(p));
      }
    }
  }
}

TEST(Compression, TokensAreUniformAtEveryPosition) {
  const auto task = make(5, 12);
  constexpr int kCount = 4000;
  std::map<std::pair<size_t, int32_t>, double> counts;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->any_example(3, Split::train, i);
    for (size_t p = 0; p + 1 < e.tokens.size(); p++) counts[{p, e.tokens[p]}]++;
  }
  ASSERT_EQ(counts.size(), 44u);
  const double mean = kCount / 4.0;
  for (const auto& [key, count] : counts)
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << key.first << " " << key.second;
}

TEST(Compression, ShapeAndShortcuts) {
  const auto task = make(16, 32);
  const TaskShape shape = task->shape();
  EXPECT_TRUE(shape.compressed && shape.per_token && shape.causal);
  EXPECT_EQ(shape.vocab, 17);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 17);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 2000, 1000);
  for (const char* const name : {"majority", "position"})
    EXPECT_NEAR(score_of(shortcuts, name), 1.0 / 15, 0.01) << name;
  // The window that ends at the compression token holds 15 of the 31 tokens.
  EXPECT_NEAR(score_of(shortcuts, "window of 16 (last)"), (15 + 16.0 / 15) / 31, 0.01);
  for (const Shortcut& shortcut : shortcuts) EXPECT_LT(shortcut.score, 0.55) << shortcut.name;
}

TEST(Compression, TooFewInputsAreAClearError) {
  EXPECT_THROW(make(3, 20), Error);
  EXPECT_NO_THROW(make(3, 21));
}

}  // namespace
}  // namespace attn::compression_test
