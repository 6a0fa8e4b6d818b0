// remaining_score on labels counted by hand.
#include "tasks/shortcuts/remaining.h"

#include <gtest/gtest.h>

#include "core/base/check.h"

namespace attn::shortcuts_remaining_test {
namespace {

Example labels(std::vector<int32_t> target) { return {.tokens = {1}, .target = std::move(target)}; }

TEST(Remaining, TakesEveryGivenLabelOutOfTheBag) {
  // Left are {3, 3, 5}: 3 is right; {3, 5}: the smaller is named, right; {5}: right.
  EXPECT_EQ(remaining_score({labels({3, 3, 5})}), 1);
  // {3, 3, 5}: 3 is wrong; {3, 3} and {3}: right.
  EXPECT_DOUBLE_EQ(remaining_score({labels({5, 3, 3})}), 2.0 / 3);
  // Of different labels in falling order only the last is known.
  EXPECT_DOUBLE_EQ(remaining_score({labels({9, 8, 7, 6})}), 0.25);
}

TEST(Remaining, CountsLabelsNotExamplesAndOnlyTheScored) {
  EXPECT_DOUBLE_EQ(
      remaining_score({labels({-1, 4, -1, 4}), labels({2, 1, -1, -1, -1}), labels({7, -1})}),
      4.0 / 5);
  EXPECT_THROW(remaining_score({labels({-1})}), Error);
  EXPECT_THROW(remaining_score({}), Error);
}

}  // namespace
}  // namespace attn::shortcuts_remaining_test
