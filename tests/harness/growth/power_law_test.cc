// The fit against values worked out by hand, and simulated: how often intervals hold the truth, and
// how often a curve is seen where there is one and where there is none.
#include "harness/growth/power_law.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn::power_law_test {
namespace {

using Points = std::vector<LengthPoint>;

TEST(PowerLaw, AnExactLawIsFoundExactly) {
  Points points;
  for (const double n : {64.0, 128.0, 256.0, 512.0}) points.push_back({n, 3e-9 * std::pow(n, 1.5)});
  const PowerLaw law(points);
  EXPECT_NEAR(law.exponent(), 1.5, 1e-12);
  EXPECT_NEAR(law.constant(), 3e-9, 1e-18);
  EXPECT_LT(law.exponent_reach(), 1e-6);
  EXPECT_GT(law.curvature_p().value(), 0.01) << "rounding is no curve";
  const auto predicted = law.at(4096, 3);
  EXPECT_NEAR(predicted.value, 3e-9 * std::pow(4096.0, 1.5), 1e-12);
}

// y at x = 0, 1, 2, 3 (lengths are powers of e) are 0, 2, 1, 3: slope 0.8, residual squares 1.8.
TEST(PowerLaw, IntervalsAreThoseOfLeastSquares) {
  const double e = std::exp(1.0);
  const PowerLaw law(Points{{1, 1}, {e, std::exp(2.0)}, {e * e, e}, {e * e * e, std::exp(3.0)}});
  const double deviation = std::sqrt(1.8 / 2), t = 4.302652729911275;  // Student's, 2 degrees
  EXPECT_NEAR(law.exponent(), 0.8, 1e-12);
  EXPECT_NEAR(std::log(law.constant()), 0.3, 1e-12);
  EXPECT_NEAR(law.exponent_reach(), t * deviation / std::sqrt(5.0), 1e-9);
  const auto at = law.at(std::exp(4.0), 1);
  const double reach = t * deviation * std::sqrt(1 + 0.25 + 2.5 * 2.5 / 5);
  EXPECT_NEAR(std::log(at.value), 3.5, 1e-12);
  EXPECT_NEAR(std::log(at.high), 3.5 + reach, 1e-9);
  EXPECT_NEAR(std::log(at.low), 3.5 - reach, 1e-9);
  EXPECT_LT(law.at(std::exp(4.0), 9).high, at.high) << "a mean of nine is surer than one";
}

TEST(PowerLaw, TooFewPointsAreAnError) {
  EXPECT_THROW(PowerLaw({{1, 1}, {2, 2}}), Error);
  EXPECT_THROW(PowerLaw({{2, 1}, {2, 2}, {2, 3}}), Error) << "one length";
  EXPECT_THROW(PowerLaw({{1, 1}, {2, 0}, {3, 3}}), Error);
  EXPECT_FALSE(PowerLaw({{1, 1}, {2, 2}, {4, 5}}).curvature_p()) << "nothing is left to judge by";
}

struct Shares {  // of the simulated sweeps, in percent
  double exponent = 0, next = 0, curved = 0;
};

// Visits of lengths 1024 to 16384 that scatter by `scatter`, with skewed samples around the law
// n^exponent·(1 + bend·log²(n / 4096)).
Shares simulate(int visits, double scatter, double skew, double bend, int sweeps) {
  constexpr double kExponent = 1.3;
  Shares shares;
  Rng random = rng(11, "power laws");
  // The mean logarithm of the skewed part is 0.
  const auto noise = [&] {
    return scatter * random.normal() + skew * (-std::log(1 - random.uniform()) - 1);
  };
  const auto truth = [&](double n) {
    const double x = std::log(n / 4096);
    return kExponent * std::log(n) + bend * x * x;
  };
  for (int sweep = 0; sweep < sweeps; sweep++) {
    Points points;
    for (double n = 1024; n <= 16384; n *= 2)
      for (int visit = 0; visit < visits; visit++)
        points.push_back({n, std::exp(truth(n) + noise())});
    const PowerLaw law(points);
    shares.exponent += std::abs(law.exponent() - kExponent) <= law.exponent_reach();
    shares.curved += *law.curvature_p() < 0.05;
    double sum = 0;
    for (int visit = 0; visit < visits; visit++) sum += truth(32768) + noise();
    const auto predicted = law.at(32768, static_cast<size_t>(visits));
    const double measured = std::exp(sum / visits);
    shares.next += predicted.low <= measured && measured <= predicted.high;
  }
  for (double* share : {&shares.exponent, &shares.next, &shares.curved}) *share *= 100.0 / sweeps;
  return shares;
}

// 3000 sweeps: the standard error of a share of 95 % is 0.4 percentage points.
TEST(PowerLaw, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const int visits : {1, 3, 9})
    for (const auto& [scatter, skew] : {std::pair{0.01, 0.0}, {0.03, 0.01}, {0.01, 0.02}}) {
      const Shares found = simulate(visits, scatter, skew, 0, 3000);
      const std::string what = fmt::format(
          "{} visits, scatter {}, skew {}: exponent {:.1f}, next length {:.1f}, curved "
          "{:.1f}",
          visits, scatter, skew, found.exponent, found.next, found.curved);
      EXPECT_GE(found.exponent, 93) << what;
      EXPECT_LE(found.exponent, 97) << what;
      EXPECT_GE(found.next, 93) << what;
      EXPECT_LE(found.next, 97) << what;
      EXPECT_LE(found.curved, 6.2) << what << " (5 ± three standard errors)";
    }
}

TEST(PowerLaw, ACurveIsSeen) {
  EXPECT_GE(simulate(3, 0.01, 0.005, 0.03, 300).curved, 99);
  EXPECT_LE(simulate(3, 0.01, 0.005, 0.03, 300).next, 20) << "and it predicts badly";
}

}  // namespace
}  // namespace attn::power_law_test
