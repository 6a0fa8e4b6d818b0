// The summary against figures worked out by hand, the exact bootstrap distribution, and the
// coverage of its intervals on simulated data, of one visit and of several.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "harness/measure/statistics.h"

namespace attn::statistics_test {
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
  EXPECT_EQ(summarize(samples, {}, 5).ci_low, summarize(samples, {}, 5).ci_low);
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
    const Summary s = summarize(samples, {}, set);
    covered += s.ci_low <= 1 && 1 <= s.ci_high;
  }
  EXPECT_GE(covered, 132);
  EXPECT_LT(covered, 150);
}

TEST(Statistics, OfThreeVisitsAsWorkedOutByHand) {
  // Medians e^0, e^0.1, e^0.2: their logarithms have mean 0.1, deviation 0.1; t of 2
  // degrees 4.3027 (Boost.Math is not asked here).
  const double a = 1, b = std::exp(0.1), c = std::exp(0.2);
  const Summary s = summarize({a, 0.9, 1.5, b, c, b}, {3, 1, 2});
  const double middle = (0 + 0.1 + std::log((b + c) / 2)) / 3;
  double squares = 0;
  for (const double log : {0.0, 0.1, std::log((b + c) / 2)})
    squares += (log - middle) * (log - middle);
  const double reach = 4.30265272970 * std::sqrt(squares / 2 / 3);
  EXPECT_NEAR(s.ci_low, std::exp(middle - reach), 1e-9);
  EXPECT_NEAR(s.ci_high, std::exp(middle + reach), 1e-9);
  EXPECT_EQ(s.n, 6);
  EXPECT_DOUBLE_EQ(s.median, b);
}

// Eight short visits, one long and slower: the median of all samples is the long one's.
TEST(Statistics, TheIntervalHoldsTheMedianOfAllSamples) {
  for (const double slower : {1.1, 0.9}) {
    std::vector<double> samples(8, 1.0);
    samples.resize(40, slower);
    const Summary s = summarize(samples, {1, 1, 1, 1, 1, 1, 1, 1, 32});
    EXPECT_EQ(s.median, slower);
    EXPECT_LE(s.ci_low, slower);
    EXPECT_GE(s.ci_high, slower);
  }
}

TEST(Statistics, VisitsThatDoNotFitTheSamplesAreAnError) {
  EXPECT_THROW(summarize({1, 2, 3}, {2, 2}), Error);
  EXPECT_THROW(summarize({1, 2, 3}, {2}), Error);
  EXPECT_THROW(summarize({1, 2, 3}, {3, 0}), Error);
  EXPECT_THROW(summarize({1, 2, 0}, {2, 1}), Error) << "a time has a logarithm";
  EXPECT_EQ(summarize({1, 2, 4}, {3}).ci_high, summarize({1, 2, 4}).ci_high);
}

TEST(Statistics, HolmsCorrectionAsWorkedOutByHand) {
  // Sorted 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1; none below the one before.
  const std::vector<double> corrected = holm({0.03, 0.01, 0.5, 0.02});
  const double expected[] = {0.06, 0.04, 0.5, 0.06};
  for (size_t i = 0; i < 4; i++) EXPECT_DOUBLE_EQ(corrected[i], expected[i]) << i;
  EXPECT_EQ(holm({0.6, 0.7}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(holm({}).empty());
}

TEST(Statistics, McNemarsTestAsWorkedOutByHand) {
  EXPECT_DOUBLE_EQ(mcnemar(1, 5), 2 * 7 / 64.0);  // (1 + 6) of 2^6 splits on each side
  EXPECT_DOUBLE_EQ(mcnemar(5, 1), 2 * 7 / 64.0);
  EXPECT_DOUBLE_EQ(mcnemar(0, 3), 0.25);
  EXPECT_EQ(mcnemar(0, 0), 1);
  EXPECT_EQ(mcnemar(4, 4), 1);
  EXPECT_EQ(mcnemar(3, 4), 1) << "the two halves meet";
  EXPECT_LT(mcnemar(0, 4000), 1e-300);
  EXPECT_THROW(mcnemar(-1, 2), Error);
}

TEST(Statistics, QuantilesAndTailsOfStudentsT) {
  EXPECT_NEAR(student_t_above(0.025, 2), 4.30265272970, 1e-9);
  EXPECT_NEAR(student_t_tail(4.30265272970, 2), 0.025, 1e-11);
  EXPECT_NEAR(student_t_above(0.025, 1e6), 1.95996635682, 1e-6);  // nearly normal
  EXPECT_NEAR(student_t_tail(0, 3.5), 0.5, 1e-12);
}

TEST(Statistics, MediansOfVisits) {
  EXPECT_EQ(log_medians({1, 1, 9, 1}, {3, 1}), (std::vector<double>{0, 0}));
  EXPECT_THROW(log_medians({}, {}), Error);
  EXPECT_THROW(log_medians({1, 2}, {INT64_MAX, INT64_MAX}), Error);
}

enum class Noise { lognormal, exponential, disturbed };

// The logarithm of one sample's time, apart from its visit's part. `scale` as a share of the time.
double noise_of(Noise kind, double scale, Rng& random) {
  const auto exponential = [&](double mean) { return -mean * std::log(1 - random.uniform()); };
  if (kind == Noise::exponential) return std::log1p(exponential(scale));
  const double smooth = scale * random.normal();
  if (kind == Noise::disturbed && random.uniform() < 0.15) return smooth + exponential(5 * scale);
  return smooth;
}

// The median of noise_of: by formula or, of the disturbed, of 400 001 draws.
double median_noise(Noise kind, double scale) {
  if (kind == Noise::lognormal) return 0;
  if (kind == Noise::exponential) return std::log1p(scale * std::log(2.0));
  Rng random = rng(1, "median of the noise");
  std::vector<double> draws(400001);
  for (double& draw : draws) draw = noise_of(kind, scale, random);
  std::nth_element(draws.begin(), draws.begin() + 200000, draws.end());
  return draws[200000];
}

struct Design {
  Noise noise;
  double between, within;  // deviation of visits, scale of samples
  std::vector<int64_t> visits;
};

// How many percent of `cells` simulated cells have the true value in their interval: exp of the
// mean over visits of the logarithm of a visit's median.
double coverage(const Design& design, int cells, bool pooled, double& below, double& above) {
  const double truth = std::exp(median_noise(design.noise, design.within));
  Rng random = rng(20240607, "visits");
  int low = 0, high = 0;
  for (int cell = 0; cell < cells; cell++) {
    std::vector<double> samples;
    for (const int64_t size : design.visits) {
      const double visit = design.between * random.normal();
      for (int64_t i = 0; i < size; i++)
        samples.push_back(std::exp(visit + noise_of(design.noise, design.within, random)));
    }
    const Summary s = pooled ? summarize(samples) : summarize(samples, design.visits);
    low += truth < s.ci_low;
    high += s.ci_high < truth;
  }
  below = 100.0 * low / cells, above = 100.0 * high / cells;
  return 100 - below - above;
}

// 4000 cells each: the standard error of a coverage is 0.34 percentage points. 95 % nominal; a
// skewed noise moves up to 2 points from one side to the other.
TEST(Statistics, IntervalsOfVisitsCoverAsOftenAsTheySay) {
  for (const Noise noise : {Noise::lognormal, Noise::exponential, Noise::disturbed})
    for (const double between : {0.0, 0.01, 0.03, 0.1})
      for (const double within : {0.01, 0.03})
        for (const std::vector<int64_t>& visits : {std::vector<int64_t>{3, 3, 3},
                                                   {3, 2, 2},
                                                   {10, 10, 10},
                                                   {4, 4, 4, 4, 4},
                                                   {3, 3, 3, 3, 3, 3, 3, 3, 3},
                                                   {10, 10, 10, 10, 10, 10, 10, 10, 10}}) {
          double below = 0, above = 0;
          const double covered =
              coverage({noise, between, within, visits}, 4000, false, below, above);
          const std::string what = fmt::format(
              "noise {}, between {}, within {}, {} visits of {}: {:.1f} ({:.1f}, {:.1f})",
              static_cast<int>(noise), between, within, visits.size(), visits[0], covered, below,
              above);
          EXPECT_GE(covered, 93) << what;
          EXPECT_LE(covered, 97) << what;
          EXPECT_LE(below, 5) << what;
          EXPECT_LE(above, 5) << what;
        }
}

// What the intervals were before: samples of three processes taken as independent.
TEST(Statistics, SamplesOfVisitsTakenAsIndependentCoverFarTooSeldom) {
  double below = 0, above = 0;
  EXPECT_LT(coverage({Noise::lognormal, 0.03, 0.01, {3, 3, 3}}, 150, true, below, above), 85);
  EXPECT_LT(coverage({Noise::lognormal, 0.03, 0.01, {10, 10, 10}}, 60, true, below, above), 60);
}

// Samples of a machine that slows both by up to 8 times: pairs have one ratio, and each alone says
// little.
TEST(RatioInterval, IsOfPairs) {
  std::vector<double> below, above;
  for (int i = 0; i < 12; ++i) {
    below.push_back(1 + (i * 5) % 12 * 0.6);
    above.push_back(1.5 * below.back());
  }
  for (const std::vector<int64_t>& visits : {std::vector<int64_t>{}, {12}, {4, 4, 4}}) {
    const Interval found = ratio_interval(above, below, visits).value();
    EXPECT_NEAR(found.low, 1.5, 1e-12);
    EXPECT_NEAR(found.high, 1.5, 1e-12);
  }
  std::reverse(above.begin(), above.end());
  EXPECT_LT(ratio_interval(above, below)->low, 1) << "of others than pairs it is wide";
}

TEST(RatioInterval, OfVisitsIsStudentsOfTheirLogarithms) {
  const Interval found =
      ratio_interval({2, 2, 2, 6, 6, 6, 4, 4, 4}, std::vector<double>(9, 1), {3, 3, 3}).value();
  const double logs[] = {std::log(2), std::log(6), std::log(4)};
  const double mean = (logs[0] + logs[1] + logs[2]) / 3;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double reach = 4.302652729696142 * std::sqrt(squares / 2 / 3);  // 97.5 %, 2 degrees
  EXPECT_NEAR(found.low, std::exp(mean - reach), 1e-9);
  EXPECT_NEAR(found.high, std::exp(mean + reach), 1e-9);
}

// The range of five holds the middle in 15 of 16 cases.
TEST(RatioInterval, OfFewerThanSixPairsOfAVisitNothingIsSaid) {
  std::vector<double> above = {2}, below = {1};
  for (int64_t pairs = 1; pairs < 6; ++pairs) {
    EXPECT_FALSE(ratio_interval(above, below)) << pairs;
    EXPECT_FALSE(ratio_interval(above, below, {pairs})) << pairs;
    above.push_back(2 + static_cast<double>(pairs));
    below.push_back(1);
  }
  const Interval six = ratio_interval(above, below).value();  // of 2 to 7
  EXPECT_LT(six.low, 4.5);
  EXPECT_GT(six.high, 4.5);
  EXPECT_TRUE(ratio_interval({2, 3}, {1, 1}, {1, 1}));
}

TEST(RatioInterval, WrongUseIsAnError) {
  EXPECT_THROW(ratio_interval({1, 2}, {1}), Error);
  EXPECT_THROW(ratio_interval({}, {}), Error);
  EXPECT_THROW(ratio_interval({1, 2}, {1, 2}, {1}), Error);
  EXPECT_THROW(ratio_interval({1, 0}, {1, 2}), Error);
}

// Both visits' own level and the scatter within are shared in part. 95 of 100 hold the truth; of
// one visit, where the level wanders, 94 of 6 pairs and 99 of 15.
TEST(RatioInterval, HoldsTheTruth) {
  constexpr int kTrials = 400;
  const double truth = 1.2;
  int held_six = 0, held_one = 0, held_visits = 0;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    Rng stream = rng(trial, "ratios");
    std::vector<double> above, below;
    double level = 0;
    const auto add = [&](int64_t pairs, double of_visit) {
      for (int64_t i = 0; i < pairs; ++i) {
        level = 0.8 * level + 0.1 * stream.normal();
        below.push_back(std::exp(level + 0.02 * stream.normal()));
        above.push_back(truth * std::exp(level + of_visit + 0.02 * stream.normal()));
      }
    };
    const auto holds = [&](const std::vector<int64_t>& visits) {
      const Interval found = ratio_interval(above, below, visits, trial).value();
      above.clear(), below.clear(), level = 0;
      return found.low <= truth && truth <= found.high;
    };
    add(6, 0);
    held_six += holds({});
    add(15, 0);
    held_one += holds({});
    const std::vector<int64_t> visits = {5, 5, 5, 5};
    for (const int64_t pairs : visits) add(pairs, 0.03 * stream.normal());
    held_visits += holds(visits);
  }
  EXPECT_GE(held_visits, 0.92 * kTrials);
  EXPECT_GE(held_one, 0.95 * kTrials);
  EXPECT_LT(held_one, kTrials);
  EXPECT_GE(held_six, 0.9 * kTrials);
  EXPECT_LE(held_six, 0.97 * kTrials);
  EXPECT_LE(held_visits, 0.99 * kTrials);
}

}  // namespace
}  // namespace attn::statistics_test
