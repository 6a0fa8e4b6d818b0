// What a comparison is made of and how it is told: variances, undisturbed visits, the report.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/compare/report.h"
#include "harness/compare/undisturbed.h"
#include "harness/compare/variances.h"
#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::report_test {
namespace {

// Variances steadied by those of other cells, against cases worked out by hand.

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

// Bounds of times that were measured on a disturbed machine, by hand.

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

// Reports of a comparison: order, notes, and names that would break JSON, XML or LaTeX.

// One pair the same, one worse, one better, one left out, one of a hostile name.
Comparison mixed() {
  Row failed = memory("full", 16, 10);
  failed.result = {.status = Status::oom, .reason = "a & b"};
  Row hostile = memory("full", 1, 10), larger = memory("full", 1, 20);
  hostile.key.variant = larger.key.variant = {.name = "a<b>&\"'|_%\x01\xEF\xBF\xBF", .params = {}};
  return compare(
      file({memory("full", 2, 10), memory("full", 4, 10), memory("full", 8, 10),
            memory("full", 16, 10), memory("full", 32, 10), hostile}),
      file({memory("full", 2, 10), memory("full", 4, 20), memory("full", 8, 5), failed, larger}),
      {});
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Report, TablesBeginWithWhatBecameWorse) {
  const std::vector<Table> tables = comparison_tables(mixed());
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 4u);
  std::vector<std::string> verdicts;
  for (const auto& line : tables[0].rows) verdicts.push_back(line[6]);
  EXPECT_EQ(verdicts,
            (std::vector<std::string>{"more memory", "more memory", "less memory", "same"}));
  EXPECT_EQ(tables[1].rows[0], (std::vector<std::string>{"memory", "2", "1", "0", "1", "1"}));
  EXPECT_EQ(tables[1].notes, (std::vector<std::string>{"memory not compared: 1: NEW: oom: a & b",
                                                       "only in OLD: 1"}));
}

TEST(Report, JsonHoldsEveryPair) {
  const Json json = comparison_json(mixed());
  EXPECT_EQ(json["pairs"].size(), 4u);
  EXPECT_EQ(json["left_out"][0]["reason"], "NEW: oom: a & b");
  EXPECT_EQ(json["only_in_old"], 1);
  EXPECT_EQ(json["regression"], true);
  EXPECT_EQ(json["pairs"][1]["value"], 2.0);
  EXPECT_EQ(json["pairs"][1]["verdict"], "worse");
  EXPECT_EQ(non_finite_place(json), "");
}

TEST(Report, JunitFailsForWhatBecameWorse) {
  const std::string xml = junit_xml(mixed());
  EXPECT_TRUE(holds(xml, "tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"1\"")) << xml;
  EXPECT_TRUE(holds(xml, "name=\"full length=4\"><failure ")) << xml;
  EXPECT_TRUE(holds(xml, "<skipped message=\"NEW: oom: a &amp; b\"/>")) << xml;
  EXPECT_TRUE(holds(xml, "name=\"a&lt;b&gt;&amp;&quot;'|_%\\x01? length=1\"")) << xml;
  EXPECT_FALSE(holds(xml, "\x01"));
}

TEST(Report, LatexIsEscaped) {
  const std::string text = render_latex({.title = "50 % of_a",
                                         .columns = {"variant", "±"},
                                         .rows = {{"[a]{b}\\$#&~^<|>\"", "1\n2"}},
                                         .notes = {"n_1"}});
  EXPECT_TRUE(holds(text, "\\caption{50 \\% of\\_a}")) << text;
  EXPECT_TRUE(holds(text, "variant & $\\pm$ \\\\\n")) << text;
  EXPECT_TRUE(holds(text,
                    "{}[a]\\{b\\}\\textbackslash{}\\$\\#\\&\\textasciitilde{}"
                    "\\textasciicircum{}\\textless{}\\textbar{}\\textgreater{}"
                    "\\textquotedbl{} & 1 2 \\\\\n"))
      << text;
  EXPECT_TRUE(holds(text, "\\footnotesize n\\_1")) << text;
  EXPECT_TRUE(holds(text, "\\begin{tabular}{lr}")) << text;
}

TEST(Report, ABarDoesNotEndACellOfMarkdown) {
  EXPECT_TRUE(
      holds(render_markdown({.title = "t", .columns = {"c"}, .rows = {{"a|b"}}, .notes = {}}),
            "| a\\|b |"));
}

}  // namespace
}  // namespace attn::report_test
