// Bounds of times that were measured on a disturbed machine, by hand.
#include "harness/compare/undisturbed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::undisturbed_test {
namespace {

using namespace rows_of_sweep;

// Visits of two samples each, with what the witness reached of its best.
struct Visited {
  double fastest = 1, slowest = 1, witness = 1;
};
Row visited(const std::vector<Visited>& visits, std::vector<Noise> noisy = {Noise::witness}) {
  Row made = row(Measure::speed, "linear", 64);
  made.key.axes.threads = 1;
  made.result.metrics = SpeedMetrics{.time = {.median = visits[0].fastest}};
  for (const Visited& visit : visits) {
    made.result.times.insert(made.result.times.end(), {visit.slowest, visit.fastest});
    made.result.visits.push_back(2);
    made.result.witness.flops_per_s.push_back(1e9 * visit.witness);
    made.result.witness.copy_bytes_per_s.push_back(1e9);
  }
  made.result.noisy = std::move(noisy);
  return made;
}

MachineSeen seen_by(const Row& row, int64_t cores = 1) {
  MachineSeen seen(cores);
  Row best = row;
  best.result.witness = {{1e9}, {1e9}};
  seen.add(best);
  return seen;
}

void expect_bounds(const Row& row, double low, double high, int64_t cores = 1) {
  const auto bounds = time_bounds(row, seen_by(row, cores), 0);
  ASSERT_TRUE(bounds);
  EXPECT_NEAR(std::exp(bounds->low), low, 1e-9);
  EXPECT_NEAR(std::exp(bounds->high), high, 1e-9);
}

TEST(Undisturbed, AVisitWasSlowerByAsMuchAsItsWitnessAtMost) {
  expect_bounds(visited({{4, 4, 0.25}, {4, 4, 0.5}, {4, 4, 0.8}}), 2, 4);
}

TEST(Undisturbed, TheFastestSampleIsNotFasterThanUndisturbed) {
  expect_bounds(visited({{4, 4, 0.25}, {1, 4, 0.25}, {1, 1, 1}}), 1, 1);
  expect_bounds(visited({{1, 9, 0.25}, {1, 9, 0.25}, {1, 9, 0.25}}), 1, 1);
}

TEST(Undisturbed, OneVisitThatTheWitnessMissedDoesNotRaiseTheBound) {
  expect_bounds(visited({{4, 4, 1}, {2, 2, 0.5}, {2, 2, 0.5}}), 1, 2);
}

// The spread that every visit of both rows has is the program's own.
TEST(Undisturbed, WhatEveryVisitHasIsNoDisturbance) {
  const Row spread = visited({{2, 3, 0.5}, {2, 4, 0.5}, {2, 3, 0.5}});
  EXPECT_NEAR(least_spread({&spread}), std::log(1.5), 1e-12);
  const auto bounds = time_bounds(spread, seen_by(spread), std::log(1.5));
  EXPECT_NEAR(std::exp(bounds.value().low), 1, 1e-9);
}

TEST(Undisturbed, CopiesCountWhereMemoryBoundsTheTime) {
  Row made = visited({{4, 4, 1}, {4, 4, 1}, {4, 4, 1}});
  made.result.witness.copy_bytes_per_s.assign(3, 5e8);
  expect_bounds(made, 4, 4);
  std::get<SpeedMetrics>(made.result.metrics).peak_fraction = 0.25;  // 1 s of arithmetic
  std::get<SpeedMetrics>(made.result.metrics).roofline_s = 1;
  expect_bounds(made, 4, 4);
  std::get<SpeedMetrics>(made.result.metrics).roofline_s = 2;
  expect_bounds(made, 2, 4);
}

// Rounds of scripts/regress: each of their visits has the witnesses of several.
TEST(Undisturbed, OfSeveralWitnessesOfAVisitTheSlowestCounts) {
  Row made = visited({{4, 4, 1}, {4, 4, 1}, {4, 4, 1}});
  made.result.witness.flops_per_s = {1e9, 5e8, 8e8, 2.5e8, 5e8, 1e9};
  made.result.witness.copy_bytes_per_s.assign(6, 1e9);
  expect_bounds(made, 2, 4);
}

TEST(Undisturbed, StolenTimeAndOtherProcessesBoundToo) {
  Row made = visited({{4, 4, 1}, {4, 4, 1}, {4, 4, 1}}, {Noise::steal});
  made.result.disturbance = Disturbance{.seconds = 10, .stolen_s = 5, .others_s = 2.5, .load = 3};
  expect_bounds(made, 2, 4);
  made.result.noisy = {Noise::switches};
  expect_bounds(made, 3, 4);
  made.result.disturbance->others_s = 20;  // three on one core: a quarter of the time is left
  expect_bounds(made, 1, 4);
  expect_bounds(made, 2, 4, 4);
  made.result.noisy = {Noise::steal, Noise::switches};
  expect_bounds(made, 1, 4, 4);
}

TEST(Undisturbed, WithoutAWitnessOrCountsNothingBoundsIt) {
  Row made = visited({{4, 4, 1}, {4, 4, 1}}, {Noise::steal});
  EXPECT_FALSE(time_bounds(made, seen_by(made), 0)) << "no counts";
  made.result.disturbance = Disturbance{.seconds = 1, .stolen_s = 1};
  EXPECT_FALSE(time_bounds(made, seen_by(made), 0)) << "all was stolen";
  made.result.noisy = {Noise::switches};
  EXPECT_FALSE(time_bounds(made, seen_by(made), 0)) << "neither load nor others";
  made.result.noisy = {Noise::witness};
  EXPECT_TRUE(time_bounds(made, seen_by(made), 0));
  EXPECT_FALSE(time_bounds(made, MachineSeen(), 0)) << "what was best is not known";
  made.result.witness = {};
  EXPECT_FALSE(time_bounds(made, seen_by(made), 0));
}

}  // namespace
}  // namespace attn::undisturbed_test
