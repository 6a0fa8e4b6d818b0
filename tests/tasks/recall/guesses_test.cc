// The rules on examples small enough to work out by hand.
#include "tasks/recall/guesses.h"

#include <gtest/gtest.h>

namespace attn::guesses_test {
namespace {

const std::vector<int32_t> kTokens = {1, 5, 2, 6, 1, 7, 2, 1};

TEST(RecallGuesses, AfterTheLatestEqualRun) {
  EXPECT_EQ(recall::after_latest(kTokens, 7, 1), 7);   // 1 stood last at 4
  EXPECT_EQ(recall::after_latest(kTokens, 4, 1), 5);   // and before that at 0
  EXPECT_EQ(recall::after_latest(kTokens, 0, 1), -1);  // nothing before
  EXPECT_EQ(recall::after_latest(kTokens, 5, 1), -1);  // 7 is new
  const std::vector<int32_t> pairs = {1, 2, 8, 3, 2, 9, 1, 2};
  EXPECT_EQ(recall::after_latest(pairs, 7, 1), 9);
  EXPECT_EQ(recall::after_latest(pairs, 7, 2), 8);
  EXPECT_EQ(recall::after_latest(pairs, 0, 2), -1);
  EXPECT_EQ(recall::after_latest({4, 4, 4}, 2, 2), 4);  // runs may overlap
}

TEST(RecallGuesses, TheCommonestWithinARange) {
  EXPECT_EQ(recall::commonest(kTokens, 7, 1, 9), 1);
  EXPECT_EQ(recall::commonest(kTokens, 7, 2, 9), 2);
  EXPECT_EQ(recall::commonest(kTokens, 3, 5, 9), 5);  // once each: the smallest
  EXPECT_EQ(recall::commonest(kTokens, 0, 5, 9), -1);
  EXPECT_EQ(recall::commonest({9, 9, 3}, 2, 1, 8), 3);
}

TEST(RecallGuesses, ScoresAreMeansOverTheScoredLabels) {
  const Example e{.tokens = {1, 5, 1, 1}, .target = {-1, 5, 4, 1}};
  const auto here = [](const Example& x, size_t i) { return x.tokens[i]; };
  EXPECT_DOUBLE_EQ(recall::rule_score({e}, here), 2.0 / 3);
  const auto before = [](const Example& x, size_t i) {
    return std::vector<int32_t>(x.tokens.begin(), x.tokens.begin() + static_cast<ptrdiff_t>(i));
  };
  EXPECT_DOUBLE_EQ(recall::random_choice_score({e, e}, before), (0 + 0 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(recall::random_token_score({e}, 1, 5), (0 + 0 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(recall::random_token_score({e}, 5, 9), 0);
  EXPECT_DOUBLE_EQ(recall::commonest_token_score({e}, 1, 4), 1.0 / 3);
  EXPECT_DOUBLE_EQ(recall::commonest_token_score({e}, 2, 9), 1.0 / 3);
  const auto none = [](const Example&, size_t) { return std::vector<int32_t>{}; };
  EXPECT_EQ(recall::random_choice_score({e}, none), 0);
}

}  // namespace
}  // namespace attn::guesses_test
