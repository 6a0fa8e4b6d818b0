// Formulas are found exactly where the figures are sums of the candidates, nearly where they are
// not quite, and not at all where they are something else.
#include "harness/check/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace attn::fit_test {
namespace {

const std::vector<std::vector<int>> kTerms = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1},
                                              {2, 1}, {0, 2}, {1, 2}, {2, 2}};

std::vector<CountedFigure> figures(const std::function<double(double, double)>& of) {
  std::vector<CountedFigure> all;
  for (const double n : {192, 384, 576, 768})
    for (const double d : {16, 32, 48, 64}) all.push_back({{n, d}, of(n, d)});
  return all;
}

TEST(Fit, FindsTheCoefficientsOfASum) {
  const auto seen = figures([](double n, double d) { return 4 * n * n * d - n / 2 + 3 * d * d; });
  const Formula found = fitted(kTerms, seen);
  EXPECT_EQ(worst_error(found, seen), 0);
  EXPECT_EQ(found.text({"n", "d"}), "-0.5 * n + 4 * n * n * d + 3 * d * d");
}

TEST(Fit, CoefficientsMayBeSimpleFractions) {
  const auto seen = figures([](double n, double d) { return 5 * n * n / 16 + n * d / 12; });
  EXPECT_EQ(worst_error(fitted(kTerms, seen), seen), 0);
  EXPECT_EQ(fitted(kTerms, seen).terms.size(), 2U);
}

TEST(Fit, NothingCountedIsNothing) {
  const auto seen = figures([](double, double) { return 0; });
  const Formula found = fitted(kTerms, seen);
  EXPECT_EQ(found.text({"n", "d"}), "0");
  EXPECT_EQ(worst_error(found, seen), 0);
}

TEST(Fit, LeavesOutWhatHardlyCounts) {
  const auto seen = figures([](double n, double d) { return 4 * n * d + 1.7 * std::sqrt(n); });
  const Formula found = fitted(kTerms, seen);
  EXPECT_LE(found.terms.size(), 2U) << found.text({"n", "d"});
  EXPECT_LE(worst_error(found, seen), 1.1 * kFitted);
  EXPECT_GT(worst_error(found, seen), 0);
}

TEST(Fit, IsFarOffWhereNoSumFits) {
  const auto seen = figures([](double n, double d) { return n > 500 ? n * d : 3 * n * n; });
  EXPECT_GT(worst_error(fitted(kTerms, seen), seen), 0.01);
}

// Candidates that the figures cannot tell apart: one of them is enough.
TEST(Fit, OfTwoAlikeOneIsTaken) {
  std::vector<CountedFigure> seen;
  for (const double n : {1, 2, 3, 4}) seen.push_back({{n, 7}, 5 * n});
  const Formula found = fitted({{1, 0}, {1, 1}}, seen);
  EXPECT_EQ(found.text({"n", "d"}), "5 * n");
}

TEST(Fit, AnErrorIsRelative) {
  const Formula twice{{{{1}, 2}}};
  EXPECT_DOUBLE_EQ(worst_error(twice, {{{4}, 10}}), 0.2);
  EXPECT_TRUE(std::isinf(worst_error(twice, {{{4}, 0}})));
}

}  // namespace
}  // namespace attn::fit_test
