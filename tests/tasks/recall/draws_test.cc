// Draws without repetition against their probabilities, and the power law against libm's.
#include "tasks/recall/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"

namespace attn::draws_test {
namespace {

TEST(RecallDraws, ThePowerLawIsThatOfTheMathematicsLibrary) {
  for (const double a : {0.001, 0.01, 0.37, 1.0, 2.0, 3.75, 8.0}) {
    const std::vector<double> weights = recall::power_law(500, a);
    ASSERT_EQ(weights.size(), 500u);
    for (size_t i = 0; i < weights.size(); i++) {
      const double expected = a * std::pow(static_cast<double>(i + 1), a - 1);
      EXPECT_NEAR(weights[i], expected, 1e-13 * expected) << a << " at " << i;  // 60 roundings
    }
  }
  EXPECT_TRUE(recall::power_law(0, 1).empty());
}

TEST(RecallDraws, DistinctOnesAreEveryOrderedChoiceAlike) {
  Rng random(7);
  std::map<std::vector<int32_t>, double> counts;
  constexpr int kDraws = 12000;
  for (int i = 0; i < kDraws; i++) counts[recall::distinct(random, 4, 2)]++;
  ASSERT_EQ(counts.size(), 12u);
  for (const auto& [chosen, count] : counts) {
    EXPECT_NE(chosen[0], chosen[1]);
    EXPECT_NEAR(count, kDraws / 12.0, 5 * std::sqrt(kDraws / 12.0));  // five deviations
  }
  const std::vector<int32_t> all = recall::distinct(random, 9, 9);
  EXPECT_EQ(std::set<int32_t>(all.begin(), all.end()).size(), 9u);
}

TEST(RecallDraws, WeightsDecideAmongThoseLeft) {
  Rng random(8);
  const std::vector<double> weights = {1, 0, 3, 6};
  constexpr double kDraws = 20000;
  std::map<size_t, double> first, second_after_last;
  for (int i = 0; i < static_cast<int>(kDraws); i++) {
    const std::vector<size_t> chosen = recall::weighted_distinct(random, weights, 3);
    ASSERT_EQ(std::set<size_t>(chosen.begin(), chosen.end()), (std::set<size_t>{0, 2, 3}));
    first[chosen[0]]++;
    if (chosen[0] == 3) second_after_last[chosen[1]]++;
  }
  EXPECT_NEAR(first[0], 0.1 * kDraws, 5 * std::sqrt(0.1 * kDraws));
  EXPECT_NEAR(first[2], 0.3 * kDraws, 5 * std::sqrt(0.3 * kDraws));
  EXPECT_NEAR(second_after_last[0], 0.25 * first[3], 5 * std::sqrt(0.25 * first[3]));
}

TEST(RecallDraws, TooFewInputsAreAClearError) {
  EXPECT_NO_THROW(recall::check_inputs("toy", 2, 20, "length"));
  EXPECT_NO_THROW(recall::check_inputs("toy", 1 << 20, 1, "length"));
  for (const auto& [symbols, places] : {std::pair{2, 19}, std::pair{1, 1000}, std::pair{1023, 2}})
    try {
      recall::check_inputs("toy", symbols, places, "length");
      FAIL() << symbols << " " << places;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("length must be larger"), std::string::npos);
    }
}

}  // namespace
}  // namespace attn::draws_test
