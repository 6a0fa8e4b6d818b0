// Comparisons of simulated sweeps: how often the intervals hold the truth, how often a sweep
// without a change raises an alarm, and what is found. Visits scatter as a lognormal or with
// outliers, samples are skewed.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/compare/scores.h"
#include "harness/compare/time_pairs.h"
#include "harness/measure/statistics.h"
#include "harness/train/example_scores.h"
#include "tests/harness/compare/simulated_sweep.h"

namespace attn::compare_simulation_test {
namespace {

using namespace simulated_sweep;

struct Found {
  double covered = 0, alarms = 0, slower = 0;  // in percent; the last of cell 0
};

Found simulate(const Sweep& sweep, int sweeps, double threshold) {
  Rng random = rng(20260722, "comparisons");
  double covered = 0, alarms = 0, slower = 0;
  const int kEvery = sweep.cells > 20 ? 10 : 1;  // quantiles take most of the time
  for (int n = 0; n < sweeps; n++) {
    std::vector<Row> before, after;
    std::vector<RowPair> pairs;
    for (size_t cell = 0; cell < sweep.cells; cell++) {
      before.push_back(timed(sweep, cell, 0, random));
      after.push_back(timed(sweep, cell, cell == 0 ? sweep.planted : 0, random));
    }
    for (size_t cell = 0; cell < sweep.cells; cell++)
      pairs.push_back({&before[cell], &after[cell], ""});
    const std::vector<Tested> tested = times_alone(pairs, threshold);
    std::vector<double> p;
    for (size_t cell = 0; cell < sweep.cells; cell++) {
      const double truth = cell == 0 ? sweep.planted : 0;
      const Change& change = tested[cell].change.value();
      if (n % kEvery == 0) covered += std::abs(change.value - truth) <= reach(change);
      p.push_back(probability_within(change, tested[cell].margin));
    }
    const std::vector<double> corrected = holm(p);
    bool has_alarm = false;
    for (size_t cell = 0; cell < sweep.cells; cell++) {
      if (corrected[cell] > 0.05) continue;
      const Judgement verdict =
          verdict_of(tested[cell].change.value(), tested[cell].margin, corrected[cell]);
      const bool is_true = cell == 0 && std::abs(sweep.planted) > std::log1p(threshold);
      if (cell == 0) slower += verdict == Judgement::worse;
      has_alarm = has_alarm || !is_true;
    }
    alarms += has_alarm;
  }
  const double share = 100.0 / sweeps;
  Found found{covered * kEvery * share / static_cast<double>(sweep.cells), alarms * share,
              slower * share};
  ::testing::Test::RecordProperty("covered", fmt::format("{:.2f}", found.covered));
  ::testing::Test::RecordProperty("alarms", fmt::format("{:.2f}", found.alarms));
  ::testing::Test::RecordProperty("slower", fmt::format("{:.2f}", found.slower));
  return found;
}

// 2000 sweeps: the standard error of a share of 5 % is 0.5 percentage points.
void expect_sound(const Sweep& sweep) {
  const Found strict = simulate(sweep, 2000, 0);
  EXPECT_GE(strict.covered, 93);
  EXPECT_LE(strict.covered, sweep.outliers ? 98.5 : 97) << "with outliers t is too careful";
  EXPECT_LE(strict.alarms, 5);
}

TEST(CompareSimulation, EqualCells) { expect_sound({.deviation = equal}); }
TEST(CompareSimulation, CellsOfTwoKinds) { expect_sound({.deviation = two_kinds}); }
TEST(CompareSimulation, CellsOfAllKinds) { expect_sound({.deviation = all_kinds}); }
TEST(CompareSimulation, VisitsWithOutliers) {
  expect_sound({.deviation = equal, .outliers = true});
}
TEST(CompareSimulation, OutliersOfAllKinds) {
  expect_sound({.deviation = all_kinds, .outliers = true});
}
TEST(CompareSimulation, FewCells) {
  for (const size_t cells : {3u, 8u}) expect_sound({.deviation = equal, .cells = cells});
}
TEST(CompareSimulation, FewCellsOfAllKinds) { expect_sound({.deviation = all_kinds, .cells = 8}); }
TEST(CompareSimulation, TwentyCells) { expect_sound({.deviation = all_kinds, .cells = 20}); }

TEST(CompareSimulation, WithTheDefaultThresholdEqualFilesHardlyEverDiffer) {
  EXPECT_LE(simulate({.deviation = all_kinds}, 2000, 0.02).alarms, 5);
}

double quiet(size_t) { return 0.005; }

TEST(CompareSimulation, ASlowdownOfFivePercentIsFoundAndOneOfOnePercentIsNot) {
  const Found five =
      simulate({.deviation = quiet, .planted = std::log(1.05), .in_visit = 0.003}, 500, 0.02);
  EXPECT_GE(five.slower, 95);
  EXPECT_LE(five.alarms, 5);
  const Found one =
      simulate({.deviation = quiet, .planted = std::log(1.01), .in_visit = 0.003}, 500, 0.02);
  EXPECT_LE(one.slower, 1);
}

// 1000 examples, of which some are right before alone or after alone.
Found simulate_examples(double lost, double won, double threshold) {
  constexpr int kPairs = 2000;
  Rng random = rng(7, "examples");
  double covered = 0, slower = 0, alarms = 0;
  for (int n = 0; n < kPairs; n++) {
    std::vector<double> before, after;
    for (int example = 0; example < 1000; example++) {
      const double draw = random.uniform();
      const double both = draw > 0.6 ? 1 : 0;
      before.push_back(draw < lost ? 1 : draw < lost + won ? 0 : both);
      after.push_back(draw < lost ? 0 : draw < lost + won ? 1 : both);
    }
    const auto row = [](const std::vector<double>& each) {
      const ExampleScores packed = example_scores(each, {});
      Row scored;
      scored.key.measure = Measure::accuracy;
      AccuracyMetrics metrics;
      metrics.by_example =
          ScoresByExample{packed.count, packed.levels, packed.digest, packed.digits};
      scored.result.metrics = metrics;
      return scored;
    };
    const Row old_row = row(before), new_row = row(after);
    const ScoreChange found = change_over_examples({&old_row, &new_row}).value();
    covered += std::abs(found.change.value - (lost - won)) <= reach(found.change);
    const double p = std::max(probability_within(found.change, threshold), found.least_p);
    const Judgement verdict = verdict_of(found.change, threshold, p);
    slower += verdict == Judgement::worse;
    alarms += verdict == Judgement::worse || verdict == Judgement::better;
  }
  return {100 * covered / kPairs, 100 * alarms / kPairs, 100 * slower / kPairs};
}

TEST(CompareSimulation, ExamplesOfOneSeed) {
  for (const double each : {0.004, 0.03, 0.1}) {
    const Found equal_scores = simulate_examples(each, each, 0);
    EXPECT_GE(equal_scores.covered, 93) << each;
    EXPECT_LE(equal_scores.covered, 97.5) << each;
    EXPECT_LE(equal_scores.alarms, 5) << each;
  }
  const Found worse = simulate_examples(0.1, 0.03, 0.02);
  EXPECT_GE(worse.covered, 93);
  EXPECT_LE(worse.covered, 97);
  EXPECT_GE(worse.slower, 95);
  EXPECT_LE(simulate_examples(0.05, 0.03, 0.02).slower, 5) << "2 points are the threshold";
}

}  // namespace
}  // namespace attn::compare_simulation_test
