// A/A measurements: figures by hand, and simulated ones, whose intervals and whose smallest
// detectable difference must be what they claim.
#include "harness/compare/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "harness/compare/noise_report.h"
#include "harness/compare/time_pairs.h"
#include "tests/harness/compare/rows_of_sweep.h"
#include "tests/said.h"

namespace attn::noise_test {
namespace {

using namespace simulated_sweep;

RowsFile measurement(const std::string& run, std::vector<Row> rows) {
  RowsFile file = rows_of_sweep::file(std::move(rows));
  file.run.run = run;
  file.run.started_at = "2026-01-31T12:00:00Z";
  file.path = run + ".jsonl";
  return file;
}

Row at(Row row, Mode mode, int64_t length) {
  row.key.variant = rows_of_sweep::plugin("linear");
  row.key.axes.mode = mode;
  row.key.axes.threads = 1;
  row.key.axes.length = length;
  return row;
}

// Visits whose logarithms lie at -d, 0 and d around that of `time`.
Row visited(int64_t length, double time, double d, const std::string& variant = "linear") {
  return rows_of_sweep::speed(variant, length, {time * std::exp(-d), time, time * std::exp(d)});
}

// Of one pair: six visits around their mean, s² = 4 d² / 5; t of 4 degrees: 2.7764 and 0.9410.
TEST(Noise, TheDetectableDifferenceIsTheTextbooksForOnePair) {
  const double d = std::log(1.01);
  const NoiseReport report =
      noise_of(measurement("a", {visited(64, 1, d)}), measurement("b", {visited(64, 1, d)}));
  ASSERT_EQ(report.groups.size(), 1u);
  const double deviation = d * std::sqrt(4.0 / 5);
  EXPECT_NEAR(report.all.scatter, std::expm1(deviation), 1e-9);
  EXPECT_NEAR(std::log1p(report.all.detectable),
              (2.7764451 + 0.9409646) * deviation * std::sqrt(2.0 / 3), 1e-7);
  EXPECT_EQ(report.all.held, 1);
  EXPECT_EQ(report.all.raised, 0);
}

TEST(Noise, WhatTheMeasurementsDifferByCounts) {
  const double d = std::log(1.01);
  const NoiseReport same =
      noise_of(measurement("a", {visited(64, 1, d)}), measurement("b", {visited(64, 1, d)}));
  const NoiseReport apart =
      noise_of(measurement("a", {visited(64, 1, d)}), measurement("b", {visited(64, 1.05, d)}));
  EXPECT_GT(apart.all.detectable, 2 * same.all.detectable);
  EXPECT_NEAR(apart.all.largest, 0.05, 1e-9);
  EXPECT_EQ(apart.all.held, 0);
  EXPECT_EQ(apart.all.raised, 1);
}

TEST(Noise, EachModeNumberOfThreadsAndLengthStandsAlone) {
  std::vector<Row> one, other;
  for (const Mode mode : {Mode::train, Mode::forward})
    for (const int64_t length : {128, 64}) {
      one.push_back(at(visited(length, 1, 0.01), mode, length));
      other.push_back(at(visited(length, 1, 0.02), mode, length));
    }
  Row threaded = one[0];
  threaded.key.axes.threads = 2;
  one.push_back(threaded);
  other.push_back(threaded);
  const NoiseReport report = noise_of(measurement("a", one), measurement("b", other));
  std::vector<std::tuple<Mode, int64_t, int64_t>> places;
  for (const NoiseOf& group : report.groups)
    places.emplace_back(group.mode.value(), group.threads, group.length);
  EXPECT_EQ(places, (std::vector<std::tuple<Mode, int64_t, int64_t>>{{Mode::forward, 1, 64},
                                                                     {Mode::forward, 1, 128},
                                                                     {Mode::train, 1, 64},
                                                                     {Mode::train, 1, 128},
                                                                     {Mode::train, 2, 128}}));
  EXPECT_EQ(report.all.pairs, 5);
  EXPECT_TRUE(floors_of(report).empty()) << "of one cell each";
}

TEST(Noise, AFloorIsOfThreeCells) {
  std::vector<Row> rows;
  for (const char* variant : {"full", "linear", "performer"})
    rows.push_back(at(visited(64, 1, 0.01, variant), Mode::forward, 64));
  for (size_t i = 0; i < rows.size(); i++)
    rows[i].key.variant = rows_of_sweep::plugin(i == 0 ? "full" : i == 1 ? "linear" : "performer");
  const NoiseReport report = noise_of(measurement("a", rows), measurement("b", rows));
  const NoiseFloor floors = floors_of(report);
  ASSERT_EQ(floors.size(), 1u);
  EXPECT_EQ(floors[0].mode, Mode::forward);
  EXPECT_EQ(floors[0].length, 64);
  EXPECT_EQ(floors[0].cells, 3);
  EXPECT_EQ(floors[0].share, report.groups[0].detectable);
  EXPECT_EQ(floors[0].measured_at, "2026-01-31T12:00:00Z");
  EXPECT_EQ(floors[0].commit, "A-O3");
}

TEST(Noise, RefusesOneRunTwoMachinesAndLeavesOutSingleVisits) {
  const Row row = visited(64, 1, 0.01);
  EXPECT_THROW(noise_of(measurement("a", {row}), measurement("a", {row})), Error);
  RowsFile elsewhere = measurement("b", {row});
  elsewhere.run.environment["cpu_model"] = "B";
  EXPECT_THROW(noise_of(measurement("a", {row}), elsewhere), Error);
  const Row single = rows_of_sweep::speed("linear", 64, {1});
  const NoiseReport report = noise_of(measurement("a", {single}), measurement("b", {single}));
  EXPECT_TRUE(report.groups.empty());
  EXPECT_EQ(report.left_out.size(), 1u);
}

// A file that quotes a floor would hide the differences that a new floor is measured from.
TEST(Noise, AQuotedFloorIsNoThreshold) {
  RowsFile one = measurement("a", {at(visited(64, 1, 1e-3), Mode::forward, 64)});
  one.run.noise_floor = {{.mode = Mode::forward, .threads = 1, .length = 64, .share = 0.5}};
  const RowsFile other = measurement("b", {at(visited(64, 1.2, 1e-3), Mode::forward, 64)});
  EXPECT_EQ(noise_of(one, other).all.raised, 1);
}

TEST(Noise, DisturbedPairsCountLikeOthers) {
  Row disturbed = visited(64, 1.2, 1e-3);
  disturbed.result.noisy = {Noise::steal};
  const NoiseReport report =
      noise_of(measurement("a", {visited(64, 1, 1e-3)}), measurement("b", {disturbed}));
  EXPECT_EQ(report.disturbed, 1);
  EXPECT_EQ(report.all.raised, 1) << "or nothing could be found on a machine that is busy";
  EXPECT_EQ(report.all.held, 0);
}

// Wilson 1927; the numbers are those of R's prop.test(57, 60, correct = FALSE).
TEST(Noise, WilsonsInterval) {
  const ShareInterval share = wilson(57, 60);
  EXPECT_NEAR(share.low, 0.8629756, 1e-4);
  EXPECT_NEAR(share.high, 0.9828518, 1e-4);
  EXPECT_NEAR(wilson(0, 5).low, 0, 1e-12);
  EXPECT_NEAR(wilson(5, 5).high, 1, 1e-12);
}

TEST(Noise, TheTableSaysWhetherTheIntervalsHold) {
  std::vector<Row> one, other;
  for (int64_t length = 1; length <= 40; length++) {
    one.push_back(at(visited(length, 1, 0.01), Mode::forward, length));
    other.push_back(at(visited(length, length <= 20 ? 1.5 : 1, 0.01), Mode::forward, length));
  }
  const NoiseReport report = noise_of(measurement("a", one), measurement("b", other));
  EXPECT_FALSE(report.all.holds_as_claimed());
  const Table table = noise_table(report);
  EXPECT_EQ(table.rows.size(), 41u);
  for (const std::vector<std::string>& row : table.rows)
    EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(table.rows.back()[0], "all");
  EXPECT_EQ(table.rows.back()[6], "20");
  std::string notes;
  for (const std::string& note : table.notes) notes += note + "\n";
  EXPECT_TRUE(says(notes, "20 of 40 intervals hold"));
  EXPECT_TRUE(says(notes, "too narrow"));
  EXPECT_TRUE(says(notes, "20 of 40 cells differ from themselves"));
  const std::vector<Json> lines = noise_lines(report);
  ASSERT_EQ(lines.size(), 41u);
  EXPECT_TRUE(lines.back()["length"].is_null());
  EXPECT_EQ(lines.back()["differ_corrected"], 20);
}

// One measurement of a sweep. Its cells are of so many lengths.
std::vector<Row> simulated(const Sweep& sweep, size_t lengths, double planted, Rng& random) {
  std::vector<Row> rows;
  for (size_t cell = 0; cell < sweep.cells; cell++) {
    Row row = at(timed(sweep, cell, planted, random), Mode::forward,
                 static_cast<int64_t>(64 << (cell % lengths)));
    row.key.axes.head_dim = static_cast<int64_t>(cell + 1);  // tells the cells apart
    rows.push_back(std::move(row));
  }
  return rows;
}

struct Seen {
  double covered = 0, agrees = 0, alarms = 0;  // in percent
};

// Coverage and false alarms of whole A/A measurements.
Seen simulate(const Sweep& sweep, int times) {
  Rng random = rng(20261123, "A/A");
  Seen seen;
  for (int n = 0; n < times; n++) {
    const NoiseReport report = noise_of(measurement("a", simulated(sweep, 4, 0, random)),
                                        measurement("b", simulated(sweep, 4, 0, random)));
    seen.covered += 100.0 * static_cast<double>(report.all.held) /
                    static_cast<double>(report.all.pairs) / times;
    seen.agrees += 100.0 * report.all.holds_as_claimed() / times;
    seen.alarms += 100.0 * (report.all.raised > 0) / times;
  }
  ::testing::Test::RecordProperty("covered", fmt::format("{:.2f}", seen.covered));
  ::testing::Test::RecordProperty("agrees", fmt::format("{:.2f}", seen.agrees));
  ::testing::Test::RecordProperty("alarms", fmt::format("{:.2f}", seen.alarms));
  return seen;
}

// 2000 measurements: the standard error of a share of 5 % is 0.5 percentage points.
void expect_as_claimed(const Sweep& sweep) {
  const Seen seen = simulate(sweep, 2000);
  EXPECT_GE(seen.covered, 93);
  EXPECT_LE(seen.covered, sweep.outliers ? 98.5 : 97) << "with outliers t is too careful";
  EXPECT_LE(seen.alarms, 5);
  EXPECT_GE(seen.agrees, 90) << "the note must not blame intervals that hold";
}

TEST(NoiseSimulation, EqualCells) { expect_as_claimed({.deviation = equal, .cells = 9}); }
TEST(NoiseSimulation, CellsOfAllKinds) { expect_as_claimed({.deviation = all_kinds, .cells = 9}); }
TEST(NoiseSimulation, VisitsWithOutliers) {
  expect_as_claimed({.deviation = equal, .outliers = true, .cells = 9});
}

// The share of pairs with the difference that an A/A measurement says is detectable in which a test
// at 5 % finds it; both of sweeps like the other.
double found(const Sweep& sweep, size_t lengths, int times) {
  Rng random = rng(7, "detectable");
  double found = 0, pairs_seen = 0;
  for (int n = 0; n < times; n++) {
    const NoiseReport report = noise_of(measurement("a", simulated(sweep, lengths, 0, random)),
                                        measurement("b", simulated(sweep, lengths, 0, random)));
    const std::vector<Row> before = simulated(sweep, lengths, 0, random);
    std::vector<Row> after;
    for (size_t cell = 0; cell < sweep.cells; cell++) {
      const double planted = std::log1p(report.groups[cell % lengths].detectable);
      after.push_back(timed(sweep, cell, planted, random));
    }
    std::vector<RowPair> pairs;
    for (size_t cell = 0; cell < sweep.cells; cell++)
      pairs.push_back({&before[cell], &after[cell], ""});
    for (const Tested& tested : times_alone(pairs, 0)) {
      found += probability_within(tested.change.value(), 0) <= 0.05;
      pairs_seen++;
    }
  }
  return 100 * found / pairs_seen;
}

TEST(NoiseSimulation, TheDetectableDifferenceIsFoundAsOftenAsItClaims) {
  int number = 0;
  for (const Sweep& sweep :
       {Sweep{.deviation = equal}, Sweep{.deviation = two_kinds}, Sweep{.deviation = all_kinds},
        Sweep{.deviation = equal, .outliers = true},
        Sweep{.deviation = all_kinds, .outliers = true}}) {
    const double share = found(sweep, 6, 40);  // 2400 pairs
    EXPECT_GE(share, 75) << number;
    EXPECT_LE(share, 90) << number;
    RecordProperty(fmt::format("found_{}", number++), fmt::format("{:.1f}", share));
  }
}

}  // namespace
}  // namespace attn::noise_test
