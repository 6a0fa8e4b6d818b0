// How times and bytes grow with the length: power laws and the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "harness/growth/growth.h"
#include "harness/growth/power_law.h"
#include "harness/growth/report.h"
#include "variants/catalog.h"

namespace attn::growth_test {
namespace {

// The fit against values worked out by hand, and simulated: how often intervals hold the truth, and
// how often a curve is seen where there is one and where there is none.

using Points = std::vector<LengthPoint>;

TEST(PowerLaw, AnExactLawIsFoundExactly) {
  Points points;
  for (const double n : {64.0, 128.0, 256.0, 512.0}) points.push_back({n, 3e-9 * std::pow(n, 1.5)});
  const PowerLaw law(points);
  EXPECT_NEAR(law.exponent(), 1.5, 1e-12);
  EXPECT_NEAR(law.constant(), 3e-9, 1e-18);
  EXPECT_LT(law.exponent_reach(), 1e-6);
  EXPECT_GT(law.curvature_p().value(), 0.01) << "rounding is no curve";
  const auto predicted = law.at(4096);
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
  const auto at = law.at(std::exp(4.0));
  const double reach = t * deviation * std::sqrt(1 + 0.25 + 2.5 * 2.5 / 5);
  EXPECT_NEAR(std::log(at.value), 3.5, 1e-12);
  EXPECT_NEAR(std::log(at.high), 3.5 + reach, 1e-9);
  EXPECT_NEAR(std::log(at.low), 3.5 - reach, 1e-9);
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

Row timed_at(int64_t length, const std::vector<double>& visits);

// Rows of lengths 1024 to 16384 around the law n^exponent·(1 + bend·log²(n / 4096)): lengths
// scatter by `apart`, and `visits` of each by `scatter`, with skewed samples.
Shares simulate(int visits, double apart, double scatter, double skew, double bend, int sweeps) {
  constexpr double kExponent = 1.3;
  Shares shares;
  Rng random = rng(11, "power laws");
  // The mean logarithm of the skewed part is 0.
  const auto noise = [&] {
    return scatter * random.normal() + skew * (-std::log(1 - random.uniform()) - 1);
  };
  const auto times_at = [&](double n) {
    const double x = std::log(n / 4096);
    const double truth = kExponent * std::log(n) + bend * x * x + apart * random.normal();
    std::vector<double> times;
    for (int visit = 0; visit < visits; visit++) times.push_back(1e-9 * std::exp(truth + noise()));
    return times;
  };
  for (int sweep = 0; sweep < sweeps; sweep++) {
    std::vector<Row> rows;
    for (int64_t n = 1024; n <= 32768; n *= 2)
      rows.push_back(timed_at(n, times_at(static_cast<double>(n))));
    const Growth held = growth_of(rows, {})[0];
    const Growth::HeldBack& next = held.held_back.value();
    shares.next += next.holds();
    rows.pop_back();
    const PowerLaw law = growth_of(rows, {})[0].law.value();
    shares.exponent += std::abs(law.exponent() - kExponent) <= law.exponent_reach();
    shares.curved += *law.curvature_p() < 0.05;
  }
  for (double* share : {&shares.exponent, &shares.next, &shares.curved}) *share *= 100.0 / sweeps;
  return shares;
}

// 3000 sweeps: the standard error of a share of 95 % is 0.4 percentage points.
TEST(PowerLaw, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const int visits : {1, 3, 9})
    for (const auto& [apart, scatter, skew] :
         {std::tuple{0.0, 0.01, 0.0}, {0.0, 0.03, 0.01}, {0.02, 0.01, 0.0}, {0.06, 0.01, 0.02}}) {
      const Shares found = simulate(visits, apart, scatter, skew, 0, 3000);
      const std::string what = fmt::format(
          "{} visits, lengths apart by {}, scatter {}, skew {}: exponent {:.1f}, next "
          "length {:.1f}, curved {:.1f}",
          visits, apart, scatter, skew, found.exponent, found.next, found.curved);
      EXPECT_GE(found.exponent, 93) << what;
      EXPECT_LE(found.exponent, 97) << what;
      EXPECT_GE(found.next, 93) << what;
      EXPECT_LE(found.next, 97) << what;
      EXPECT_LE(found.curved, 6.2) << what << " (5 ± three standard errors)";
    }
}

TEST(PowerLaw, ACurveIsSeen) { EXPECT_GE(simulate(3, 0, 0.01, 0.005, 0.03, 300).curved, 90); }

// From rows to laws: which rows make a series, what is held back, and what has no law.

Row row_of(Measure measure, const std::string& variant, int64_t length) {
  Row row;
  row.key.measure = measure;
  row.key.variant = {variant, Params(variant, find_variant(variant).params)};
  row.key.axes.length = length;
  row.key.axes.causal = false;
  return row;
}

Row timed_at(int64_t length, const std::vector<double>& visits) {
  Row row = row_of(Measure::speed, "full", length);
  row.result.times = visits;
  row.result.visits.assign(visits.size(), 1);
  SpeedMetrics metrics;
  metrics.flops = 8.0 * static_cast<double>(length * length);
  row.result.metrics = metrics;
  return row;
}

Row timed(const std::string& variant, int64_t length, double exponent, double factor = 1) {
  const double time = factor * 1e-9 * std::pow(static_cast<double>(length), exponent);
  Row row = timed_at(length, {time, time * 1.02, time * 0.98});
  row.key.variant = row_of(Measure::speed, variant, length).key.variant;
  return row;
}

Row held(const std::string& variant, int64_t length, int64_t bytes) {
  Row row = row_of(Measure::memory, variant, length);
  MemoryMetrics metrics;
  metrics.extra_bytes = bytes;
  metrics.declared_extra_bytes = bytes;
  row.result.metrics = metrics;
  return row;
}

TEST(Growth, EachVariantAndShapeHasALawOfItsOwn) {
  std::vector<Row> rows;
  for (int64_t n = 256; n <= 4096; n *= 2) {
    rows.push_back(timed("full", n, 2));
    rows.push_back(timed("linear", n, 1));
    rows.push_back(held("full", n, 16 * n));
    rows.push_back(timed("full", n, 1.9));
    rows.back().key.axes.causal = true;
  }
  const std::vector<Growth> found = growth_of(rows, {});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].variant, "full");
  EXPECT_NEAR(found[0].law.value().exponent(), 2, 1e-9);
  EXPECT_NEAR(found[0].declared.value(), 2, 1e-9);
  EXPECT_EQ(found[0].lengths, std::vector<int64_t>({256, 512, 1024, 2048, 4096}));
  EXPECT_NEAR(found[1].law.value().exponent(), 1, 1e-9);
  EXPECT_EQ(found[2].measure, Measure::memory);
  EXPECT_NEAR(found[2].law.value().exponent(), 1, 1e-9);
  EXPECT_NEAR(found[2].declared.value(), 1, 1e-9);
  EXPECT_NEAR(found[3].law.value().exponent(), 1.9, 1e-9);
  EXPECT_NE(found[3].group, found[0].group);
  EXPECT_EQ(growth_of(rows, {.measures = {Measure::memory}}).size(), 1u);
}

TEST(Growth, TheLongestLengthIsHeldBackAndLengthsCanBeLeftOut) {
  std::vector<Row> rows;
  for (int64_t n = 256; n <= 4096; n *= 2) rows.push_back(timed("full", n, 2, n == 4096 ? 2 : 1));
  const Growth whole = growth_of(rows, {})[0];
  ASSERT_TRUE(whole.held_back);
  EXPECT_EQ(whole.held_back->length, 4096);
  EXPECT_NEAR(whole.held_back->measured / whole.held_back->predicted.value, 2, 1e-3);
  EXPECT_FALSE(whole.held_back->holds());
  const Growth shorter = growth_of(rows, {.to = 2048, .at = 8192})[0];
  EXPECT_NEAR(shorter.law.value().exponent(), 2, 1e-9);
  EXPECT_TRUE(shorter.held_back.value().holds());
  EXPECT_NEAR(shorter.extrapolated.value().value, 1e-9 * 8192.0 * 8192, 1e-4);
  EXPECT_EQ(growth_of(rows, {.from = 1024})[0].lengths, std::vector<int64_t>({1024, 2048, 4096}));
}

TEST(Growth, WhatHasNoLawSaysWhy) {
  std::vector<Row> rows = {timed("full", 256, 2), timed("full", 512, 2)};
  EXPECT_EQ(growth_of(rows, {})[0].reason, "2 lengths; a fit needs 3");
  Row failed = row_of(Measure::speed, "full", 1024);
  failed.result.status = Status::oom;
  rows.push_back(failed);
  EXPECT_EQ(growth_of(rows, {})[0].reason, "oom at 1024");
  rows.push_back(timed("full", 128, 2));
  EXPECT_EQ(growth_of(rows, {})[0].reason, "") << "the other lengths make a law";
  const std::vector<Row> none = {held("full", 64, 0), held("full", 128, 0), held("full", 256, 0)};
  EXPECT_EQ(growth_of(none, {})[0].reason, "no memory beyond inputs at 64");
  EXPECT_TRUE(growth_of({}, {}).empty());
}

TEST(Growth, TablesSayWhatIsCurvedAndWhatIsExtrapolated) {
  std::vector<Row> rows;
  for (int64_t n = 256; n <= 4096; n *= 2)
    rows.push_back(timed("full", n, 2, 1 + 1000.0 / static_cast<double>(n)));
  for (int64_t n = 256; n <= 4096; n *= 2) rows.push_back(timed("linear", n, 1));
  const auto growths = growth_of(rows, {.at = 65536});
  const std::vector<Table> tables = growth_tables(growths, 65536);
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  for (const auto& line : tables[0].rows) EXPECT_EQ(line.size(), tables[0].columns.size());
  EXPECT_TRUE(tables[0].rows[0][5].starts_with("yes")) << tables[0].rows[0][5];
  EXPECT_TRUE(tables[0].rows[1][5].starts_with("no")) << tables[0].rows[1][5];
  const auto has = [&](const std::string& text) {
    return std::any_of(tables[0].notes.begin(), tables[0].notes.end(),
                       [&](const std::string& note) { return note.starts_with(text); });
  };
  EXPECT_TRUE(has("curved: yes where p is below 0.01"));
  EXPECT_TRUE(has("extrapolated: not measured"));
  const std::vector<Json> lines = growth_lines(growths, 65536);
  EXPECT_EQ(lines[0]["is_curved"], true);
  EXPECT_EQ(lines[1]["extrapolated"]["length"], 65536);
}

}  // namespace
}  // namespace attn::growth_test
