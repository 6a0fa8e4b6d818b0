// The summary against figures worked out by hand, the exact bootstrap distribution, and its
// coverage on simulated data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/rng.h"
#include "harness/measure/measure.h"

namespace attn {
namespace {

TEST(Statistics, OfKnownSamples) {
  const Summary s = summarize({4, 1, 10, 2, 3});
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.mean, 4);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.mad, 1);  // of 1, 2, 7, 1, 0
  EXPECT_EQ(s.n, 5);
  EXPECT_EQ(summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Statistics, OfOneTwoAndThreeSamplesTheIntervalIsTheRange) {
  for (const std::vector<double>& samples : {std::vector<double>{7}, {7, 3}, {7, 3, 4}}) {
    const Summary s = summarize(samples);
    EXPECT_EQ(s.ci_low, *std::min_element(samples.begin(), samples.end()));
    EXPECT_EQ(s.ci_high, 7);
  }
  EXPECT_EQ(summarize({7, 3, 4}).median, 4);
}

TEST(Statistics, OfNothingOrOfNaNIsAnError) {
  EXPECT_THROW(summarize({}), Error);
  EXPECT_THROW(summarize({1, std::numeric_limits<double>::quiet_NaN()}), Error);
}

TEST(Statistics, IsSeeded) {
  Rng stream = rng(1, "samples");
  std::vector<double> samples;
  for (int i = 0; i < 12; ++i) samples.push_back(stream.normal());
  EXPECT_EQ(summarize(samples, 5).ci_low, summarize(samples, 5).ci_low);
}

double binomial(int n, int k) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0));
}

// For odd n, a resampled median is at most the k-th smallest sample when more than half of n draws,
// each with chance k/n, are.
double median_at_most(int n, int k) {
  const double p = static_cast<double>(k) / n;
  double sum = 0;
  for (int hits = n / 2 + 1; hits <= n; ++hits)
    sum += binomial(n, hits) * std::pow(p, hits) * std::pow(1 - p, n - hits);
  return sum;
}

TEST(Statistics, AgreesWithTheExactBootstrapDistribution) {
  for (const int n : {7, 9, 15, 31}) {
    std::vector<double> samples;
    for (int i = 0; i < n; ++i) samples.push_back(i * i % n + 0.001 * i);  // distinct, unsorted
    std::vector<double> sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    int low = 1, high = 1;  // ranks
    while (median_at_most(n, low) < 0.025) ++low;
    while (median_at_most(n, high) < 0.975) ++high;
    const Summary s = summarize(samples);
    EXPECT_EQ(s.ci_low, sorted[static_cast<size_t>(low - 1)]) << n;
    EXPECT_EQ(s.ci_high, sorted[static_cast<size_t>(high - 1)]) << n;
  }
}

// 150 sets of 15 lognormal samples with median 1: 95 % nominal; a binomial of 150 lies in [0.88, 1)
// with a chance above 0.999.
TEST(Statistics, IntervalCoversTheMedianAsOftenAsItSays) {
  int covered = 0;
  for (uint64_t set = 0; set < 150; ++set) {
    Rng stream = rng(set, "coverage");
    std::vector<double> samples(15);
    for (double& sample : samples) sample = std::exp(0.3 * stream.normal());
    const Summary s = summarize(samples, set);
    covered += s.ci_low <= 1 && 1 <= s.ci_high;
  }
  EXPECT_GE(covered, 132);
  EXPECT_LT(covered, 150);
}

}  // namespace
}  // namespace attn
