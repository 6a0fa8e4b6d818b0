// From the times of calls to what those who wait see, by hand.
#include "harness/run/serving_figures.h"

#include <gtest/gtest.h>

#include "tests/said.h"

namespace attn::serving_figures_test {
namespace {

TEST(ServingFigures, EachTokenCountsOnce) {
  // Two rounds of three calls; a prompt, and two sequences that bring four tokens each.
  const ServingFigures found =
      serving_figures(parse_mixed_batch("q9_2q4kv8"), {0.8, 1.2}, {0.1, 0.2, 0.3, 0.4});
  EXPECT_EQ(found.prompts, 1);
  EXPECT_EQ(found.decoding, 2);
  EXPECT_EQ(found.calls, 3);
  EXPECT_EQ(found.rounds, 2);
  EXPECT_DOUBLE_EQ(found.first_token_s.value(), 1.0);
  // Between tokens: 8 of 0.2, 8 of 0.3 (first calls, a fourth each), 3 each of 0.1 to 0.4.
  EXPECT_DOUBLE_EQ(found.token_p50_s, 0.2) << "14 of 28 waited no longer";
  EXPECT_DOUBLE_EQ(found.token_p99_s, 0.4);
  // 1 + 8 in a first call, 3 in each later one; 3 seconds in all.
  EXPECT_DOUBLE_EQ(found.generated_per_s, 2 * (9 + 3 + 3) / 3.0);
}

TEST(ServingFigures, WithoutPromptsThereIsNoFirstToken) {
  const ServingFigures found = serving_figures(parse_mixed_batch("3q1kv4"), {2}, {1, 1, 1});
  EXPECT_FALSE(found.first_token_s);
  EXPECT_DOUBLE_EQ(found.token_p50_s, 1);
  EXPECT_DOUBLE_EQ(found.token_p99_s, 2) << "a quarter of the tokens waited for the first call";
  EXPECT_DOUBLE_EQ(found.generated_per_s, 12 / 5.0);
}

TEST(ServingFigures, APromptsFirstTokenIsNoTimeBetweenTokens) {
  EXPECT_DOUBLE_EQ(serving_figures(parse_mixed_batch("q9"), {700}, {1, 2}).token_p99_s, 2);
}

TEST(ServingFigures, RoundsAreWhole) {
  EXPECT_TRUE(says(fault_of([] {
                     serving_figures(parse_mixed_batch("q9"), {1, 1}, {1, 2, 3});
                   }),
                   "3 later calls are no whole number of calls in each of 2 rounds"));
}

}  // namespace
}  // namespace attn::serving_figures_test
