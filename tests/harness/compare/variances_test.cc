// Variances steadied by those of other cells, against cases worked out by hand.
#include "harness/compare/variances.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attn::variances_test {
namespace {

TEST(Variances, OfFewCellsAreLeftAsTheyAre) {
  const std::vector<Variance> own(7, Variance{3, 2});
  for (const Variance& each : steadied(own)) {
    EXPECT_EQ(each.value, 3);
    EXPECT_EQ(each.degrees, 2);
  }
  EXPECT_TRUE(steadied({}).empty());
}

// Equal variances scatter less than chance would have it: the prior has its greatest weight, 10 of
// 60 cells, and is exp(log(4) - digamma(1) + log(1)) = 4 · exp(0.5772...).
TEST(Variances, OfEqualCellsAreDrawnToWhatIsUsual) {
  std::vector<Variance> own(60, Variance{4, 2});
  own.push_back({0, 2});
  const std::vector<Variance> steady = steadied(own);
  const double usual = 4 * std::exp(0.57721566490153286);
  EXPECT_NEAR(steady[0].value, (10 * usual + 2 * 4) / 12, 1e-8);
  EXPECT_NEAR(steady[60].value, 10 * usual / 12, 1e-8)
      << "a variance of 0 is one that is not known";
  for (const Variance& each : steady) EXPECT_EQ(each.degrees, 12);
}

// Logarithms that scatter by s beyond chance: a prior of d0 degrees with trigamma(d0 / 2) = s, by
// a third. With trigamma(1) = pi²/6 and 2 degrees each, s = pi²/6 is d0 = 2, the weight 2/3.
TEST(Variances, OfUnlikeCellsWeighTheirOwnMore) {
  const double chance = std::acos(-1.0) * std::acos(-1.0) / 6, wanted = 2 * chance;
  // Twelve logarithms, half at +a and half at -a, have a variance of a²·12/11.
  const double a = std::sqrt(wanted * 11 / 12);
  std::vector<Variance> own;
  for (int i = 0; i < 12; i++) own.push_back({std::exp(i % 2 ? a : -a), 2});
  const std::vector<Variance> steady = steadied(own);
  // The mean of the logarithms is 0.577; the prior exp(0.577 + digamma(1) - log(1)) = 1.
  EXPECT_NEAR(steady[0].degrees, 2 + 2.0 / 3, 1e-6);
  EXPECT_NEAR(steady[0].value, (1 + 3 * own[0].value) / 4, 1e-6);
  EXPECT_NEAR(steady[1].value, (1 + 3 * own[1].value) / 4, 1e-6);
}

TEST(Variances, AreSteadiedAlikeInEveryUnit) {
  std::vector<Variance> own, scaled;
  for (int i = 0; i < 9; i++) {
    own.push_back({1.0 + i * i, 2});
    scaled.push_back({1e-6 * (1.0 + i * i), 2});
  }
  const std::vector<Variance> one = steadied(own), other = steadied(scaled);
  for (size_t i = 0; i < own.size(); i++) {
    EXPECT_NEAR(one[i].value, 1e6 * other[i].value, 1e-9 * one[i].value);
    EXPECT_NEAR(one[i].degrees, other[i].degrees, 1e-9);
  }
}

}  // namespace
}  // namespace attn::variances_test
