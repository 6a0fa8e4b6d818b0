// When visits end, and that intervals which end them still hold the true value as often as they
// say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/rng.h"
#include "harness/run/stopping.h"

namespace attn::stopping_test {
namespace {

Summary of_width(double share) {
  return {.median = 2, .ci_low = 2 - 2 * share, .ci_high = 2 + 2 * share};
}

TEST(Stopping, WithoutAPrecisionTheRoundsDecide) {
  Stopping stopping(3, 0, 0);
  EXPECT_EQ(stopping.after(of_width(0), 1, 100), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0), 2, 100), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0.5), 3, 100), VisitsEnd::rounds);
}

TEST(Stopping, ANarrowIntervalMustBeConfirmed) {
  Stopping stopping(3, 0.02, 0);
  for (int visits = 1; visits < 12; visits++)
    EXPECT_EQ(stopping.after(of_width(0.019), visits, 1), std::nullopt) << visits;
  EXPECT_EQ(stopping.after(of_width(0.019), 12, 1), VisitsEnd::precision) << "6, and 6 to confirm";
}

TEST(Stopping, WhatIsNotConfirmedBeginsAnew) {
  Stopping stopping(3, 0.02, 0);
  for (int visits = 1; visits < 12; visits++) stopping.after(of_width(0.019), visits, 1);
  EXPECT_EQ(stopping.after(of_width(0.021), 12, 1), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0.03), 13, 1), std::nullopt) << "too wide for a look";
  for (int visits = 14; visits < 28; visits++)
    EXPECT_EQ(stopping.after(of_width(0.0239), visits, 1), std::nullopt) << visits;
  EXPECT_EQ(stopping.after(of_width(0.019), 28, 1), VisitsEnd::precision) << "14, and 14 more";
}

TEST(Stopping, TimeAndNumberAreBounded) {
  Stopping timed(3, 0.02, 10);
  EXPECT_EQ(timed.after(of_width(0.1), 2, 11), std::nullopt) << "at least the rounds";
  EXPECT_EQ(timed.after(of_width(0.1), 3, 9.9), std::nullopt);
  EXPECT_EQ(timed.after(of_width(0.1), 4, 10), VisitsEnd::max_time);
  Stopping endless(3, 0.02, 0);
  for (int visits = 1; visits < kMostVisits; visits++)
    ASSERT_EQ(endless.after(of_width(0.1), visits, 1e6), std::nullopt) << visits;
  EXPECT_EQ(endless.after(of_width(0.1), kMostVisits, 1e6), VisitsEnd::max_visits);
}

// Cells of visits that scatter by `between` (lognormal), each of three samples with skewed noise.
struct Simulated {
  double covered = 0, visits = 0;
};
Simulated simulate(double between, double within, double precision, int cells) {
  Simulated found;
  Rng random = rng(7, "cells measured to a precision");
  // The median of three is what a visit counts with: the mean of its logarithm is the truth.
  const auto sample = [&] { return -within * std::log(1 - random.uniform()); };
  const auto middle = [](double a, double b, double c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
  };
  const double truth = within * (1.0 / 3 + 1.0 / 2);  // of the middle of three exponentials
  for (int cell = 0; cell < cells; cell++) {
    Stopping stopping(3, precision, 0);
    std::vector<double> times;
    std::vector<int64_t> sizes;
    while (true) {
      const double log = between * random.normal() + middle(sample(), sample(), sample());
      times.push_back(std::exp(log));
      sizes.push_back(1);
      if (sizes.size() < 2) continue;
      const Summary time = summarize(times, sizes);
      if (!stopping.after(time, std::ssize(sizes), 0)) continue;
      found.covered += time.ci_low <= std::exp(truth) && std::exp(truth) <= time.ci_high;
      found.visits += static_cast<double>(sizes.size());
      break;
    }
  }
  found.covered *= 100.0 / cells;
  found.visits /= cells;
  return found;
}

// 4000 cells: the standard error of a coverage is 0.34 percentage points.
TEST(Stopping, IntervalsThatEndVisitsCoverAsOftenAsTheySay) {
  for (const double between : {0.01, 0.02, 0.03})
    for (const double within : {0.0, 0.005, 0.01}) {
      const Simulated found = simulate(between, within, 0.02, 4000);
      const std::string what = fmt::format("between {}, within {}: {:.1f} % after {:.1f} visits",
                                           between, within, found.covered, found.visits);
      EXPECT_GE(found.covered, 93) << what;
      EXPECT_LE(found.covered, 97) << what;
    }
}

}  // namespace
}  // namespace attn::stopping_test
