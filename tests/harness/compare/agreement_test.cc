// Kendall's tau between tasks: against values that scipy and the report's own code give, by hand,
// and which scores count.
#include "harness/compare/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "harness/compare/agreement_report.h"
#include "tests/places.h"
#include "tests/said.h"

namespace attn::agreement_test {
namespace {

using Numbers = std::vector<double>;

// By python/attnbench/plots/rows/agreement.py.
TEST(Kendall, TauIsThatOfTheReport) {
  const Numbers x = {0.31, 0.52, 0.18, 0.77, 0.64, 0.52, 0.90, 0.05, 0.43, 0.71};
  Numbers y = {2.9, 2.5, 3.1, 2.2, 2.5, 2.7, 2.1, 3.0, 2.8, 2.0};
  for (double& bits : y) bits = -bits;
  EXPECT_DOUBLE_EQ(kendall_tau(x, y).value(), 0.8409090909090909);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 1, 2, 3}, {1, 2, 3, 4}).value(), 0.9128709291752769);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 2, 3, 3}, {5, 4, 4, 1, 2}).value(), -0.9428090415820635);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {1, 2, 4, 3}).value(), 4.0 / 6);
  EXPECT_FALSE(kendall_tau({1, 1, 1}, {1, 2, 3}).has_value());
  EXPECT_FALSE(kendall_tau({1, 2, 3}, {1, 1, 1}).has_value());
}

// The cases that tests/python/plots/test_agreement.py reads too: ties on one side and on both, and
// few variants. Their values are those of scipy.stats.kendalltau.
TEST(Kendall, BothLanguagesGiveTheTauOfScipy) {
  std::ifstream file(source_folder() / "tests/data/kendall_tau.json");
  const Json cases = Json::parse(file);
  ASSERT_GE(cases.size(), 14u);
  for (const Json& known : cases) {
    const auto tau = kendall_tau(known["x"].get<Numbers>(), known["y"].get<Numbers>());
    ASSERT_EQ(tau.has_value(), !known["tau"].is_null()) << known;
    if (!tau) continue;
    EXPECT_NEAR(*tau, known["tau"].get<double>(), 1e-12) << known;
  }
}

TEST(Kendall, TheIntervalIsThatOfTheReport) {
  struct Known {
    double tau;
    int64_t count;
    double low, high;
  };
  for (const Known& known : {Known{0.8409090909090909, 10, 0.5384237204251496, 0.9514252638017886},
                             Known{0, 8, -0.6689153027279695, 0.6689153027279695},
                             Known{0.714, 8, 0.08630393223643418, 0.9359164393038882},
                             Known{1, 8, 0.8320890289327013, 0.9928119936826901},
                             Known{-1, 12, -0.9946264225804401, -0.9576560033447945},
                             Known{0.5, 40, 0.31516093487904434, 0.6482921542466562}}) {
    const TauInterval found = tau_interval(known.tau, known.count);
    EXPECT_NEAR(found.low, known.low, 1e-9) << known.tau;
    EXPECT_NEAR(found.high, known.high, 1e-9) << known.tau;
  }
}

// A score that its control has learned: `best` is the best shortcut.
Row scored(const std::string& task, const std::string& variant, double test, int64_t seed = 0) {
  static int64_t cells = 0;
  Row row;
  row.cell = std::to_string(cells++);
  row.key.measure = Measure::accuracy;
  row.key.variant = {.name = variant, .params = {}};
  row.key.task = Plugin{.name = task, .params = {}};
  row.key.axes.length = 64;
  row.key.axes.seed = seed;
  row.key.training = Params::unchecked({{"steps", int64_t{100}}});
  const bool bits = task == "lm" || task == "regular_language";
  row.result.metrics = AccuracyMetrics{.metric = bits ? "bits_per_token" : "accuracy",
                                       .test = test,
                                       .validation = test,
                                       .chance = bits ? 8.0 : 0.0,
                                       .shortcuts = {{"guess", bits ? 6.0 : 0.1}},
                                       .ended_by = "plateau"};
  return row;
}

AccuracyMetrics& metrics_of(Row& row) { return std::get<AccuracyMetrics>(row.result.metrics); }

std::vector<Row> on(const std::string& task, const Numbers& scores) {
  static const char* const kNames[] = {"full",  "linear", "performer", "linformer", "local",
                                       "mamba", "fnet",   "mean",      "reformer",  "hyena"};
  std::vector<Row> rows;
  for (size_t i = 0; i < scores.size(); i++) rows.push_back(scored(task, kNames[i], scores[i]));
  return rows;
}

std::vector<Row> both(std::vector<Row> rows, const std::vector<Row>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

const Numbers kRecall = {0.90, 0.80, 0.70, 0.60, 0.50, 0.40, 0.30, 0.20};
const Numbers kBitsOf = {2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7};

TEST(Agreements, FewerBitsAreBetter) {
  const Agreements found = agreements_of(both(on("mqar", kRecall), on("lm", kBitsOf)));
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].task, "mqar");
  EXPECT_EQ(found.pairs[0].with_task, "lm");
  EXPECT_EQ(found.pairs[0].variants, 8);
  EXPECT_DOUBLE_EQ(found.pairs[0].tau.value(), 1);
  EXPECT_NEAR(found.pairs[0].interval.value().low, 0.8320890289327013, 1e-9);
  EXPECT_TRUE(found.left_out.empty());
  Numbers worse = kBitsOf;
  std::reverse(worse.begin(), worse.end());
  EXPECT_DOUBLE_EQ(agreements_of(both(on("mqar", kRecall), on("lm", worse))).pairs[0].tau.value(),
                   -1);
}

TEST(Agreements, WithoutATaskInBitsOrAnotherTaskThereIsNothing) {
  EXPECT_TRUE(agreements_of(both(on("mqar", kRecall), on("copy", kRecall))).empty());
  EXPECT_TRUE(agreements_of(on("lm", kBitsOf)).empty());
  EXPECT_TRUE(agreements_of({}).empty());
  EXPECT_TRUE(agreement_tables({}).empty());
  EXPECT_TRUE(agreement_lines({}).empty());
}

TEST(Agreements, TwoTasksInBitsMakeOnePair) {
  const Agreements found = agreements_of(
      both(both(on("lm", kBitsOf), on("mqar", kRecall)), on("regular_language", kBitsOf)));
  ASSERT_EQ(found.pairs.size(), 3u);
  EXPECT_EQ(found.pairs[0].task, "mqar");
  EXPECT_EQ(found.pairs[1].task, "mqar");
  EXPECT_EQ(found.pairs[1].with_task, "regular_language");
  EXPECT_EQ(found.pairs[2].task, "lm");
  EXPECT_EQ(found.pairs[2].with_task, "regular_language");
}

TEST(Agreements, WhatWasCutOffIsLeftOutAndSaid) {
  std::vector<Row> rows = both(on("mqar", kRecall), on("lm", kBitsOf));
  metrics_of(rows[3]).ended_by = "steps";
  metrics_of(rows[8 + 5]).ended_by = "time";
  const Agreements found = agreements_of(rows);
  EXPECT_EQ(found.pairs[0].variants, 6);
  EXPECT_FALSE(found.pairs[0].interval.has_value()) << "of fewer than eight none";
  EXPECT_EQ(found.left_out, std::vector<std::string>{
                                "left out, cut off by their steps (†): linformer on mqar, mamba "
                                "on lm"});
}

TEST(Agreements, ASettingThatItsControlHasNotLearnedIsLeftOutAndSaid) {
  Numbers unlearned = kRecall;
  unlearned[0] = 0.2;  // of full; the bar is 0.55
  const Agreements found =
      agreements_of(both(both(on("copy", kRecall), on("mqar", unlearned)), on("lm", kBitsOf)));
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].task, "copy");
  ASSERT_EQ(found.left_out.size(), 1u);
  EXPECT_TRUE(says(found.left_out[0], "left out: mqar: full scores 0.200, and reached the bar"));
  Numbers noise = kBitsOf;
  noise[0] = 6.5;  // above the best shortcut
  const Agreements nothing = agreements_of(both(on("copy", kRecall), on("lm", noise)));
  EXPECT_TRUE(nothing.pairs.empty());
  ASSERT_EQ(nothing.left_out.size(), 1u);
  EXPECT_TRUE(says(nothing.left_out[0], "left out: lm: full scores 6.500"));
}

TEST(Agreements, SeedsCountByTheirMeanAndOthersThanOkNowhere) {
  std::vector<Row> rows = both(on("mqar", {0.9, 0.5, 0.4}), on("lm", {2.0, 2.2, 2.1}));
  rows.push_back(scored("mqar", "performer", 0.7, 1));  // 0.55 in the mean: above linear
  Row failed = scored("mqar", "linear", 0, 1);
  failed.result = {.status = Status::failed, .reason = "planted"};
  rows.push_back(failed);
  EXPECT_DOUBLE_EQ(agreements_of(rows).pairs[0].tau.value(), 1);
  rows.erase(rows.end() - 2);
  EXPECT_NEAR(agreements_of(rows).pairs[0].tau.value(), 1.0 / 3, 1e-12);
}

TEST(Agreements, OfACellThatComesTwiceTheLaterOneCounts) {
  std::vector<Row> rows = both(on("mqar", {0.9, 0.8, 0.7}), on("lm", {2.0, 2.1, 2.2}));
  Row again = rows[1];
  metrics_of(again).test = 0.1;
  rows.push_back(again);
  EXPECT_NEAR(agreements_of(rows).pairs[0].tau.value(), 1.0 / 3, 1e-12);
}

// Two trainings of one variant on one task are two variants, which the other task has not.
TEST(Agreements, TrainingsOfOneVariantThatDifferAreToldApart) {
  std::vector<Row> rows = both(on("mqar", {0.9, 0.8, 0.7, 0.6}), on("lm", {2.0, 2.1, 2.2, 2.3}));
  Row longer = scored("mqar", "linear", 0.95);
  longer.key.training = Params::unchecked({{"steps", int64_t{200}}});
  rows.push_back(longer);
  EXPECT_EQ(agreements_of(rows).pairs[0].variants, 3) << "full, performer and linformer";
}

TEST(Agreements, OfTunedSettingsTheChoiceCounts) {
  std::vector<Row> rows = both(on("mqar", {0.9, 0.8, 0.7}), on("lm", {2.0, 2.1, 2.2}));
  Row other = rows[2];
  other.cell = "other";
  for (Row* row : {&rows[2], &other}) row->tuned = {"steps"};
  other.key.training = Params::unchecked({{"steps", int64_t{200}}});
  metrics_of(other).test = 0.95;
  metrics_of(other).validation = 0.6;  // of the other 0.7
  rows.push_back(other);
  EXPECT_DOUBLE_EQ(agreements_of(rows).pairs[0].tau.value(), 1);
}

// Variants that score alike on one task, or on both, count as no pair there: tau-b.
TEST(Agreements, TiesCountForNeither) {
  const Agreements found =
      agreements_of(both(on("mqar", {0.9, 0.9, 0.8, 0.7}), on("lm", {2.0, 2.1, 2.2, 2.2})));
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_NEAR(found.pairs[0].tau.value(), 4.0 / 5, 1e-12);
}

TEST(Agreements, FewerThanThreeVariantsMakeNoOrder) {
  for (const Numbers& bits : {Numbers{2.0}, Numbers{2.0, 2.1}}) {
    const Agreements found = agreements_of(both(on("mqar", kRecall), on("lm", bits)));
    ASSERT_EQ(found.pairs.size(), 1u);
    EXPECT_FALSE(found.pairs[0].tau.has_value());
    EXPECT_FALSE(found.pairs[0].interval.has_value());
  }
  EXPECT_TRUE(agreements_of(both(on("mqar", kRecall), on("lm", {2.0, 2.1, 2.2}))).pairs[0].tau);
}

TEST(Agreements, APairWithoutTauSaysWhy) {
  const Agreements few = agreements_of(both(on("mqar", kRecall), on("lm", {2.0, 2.1})));
  EXPECT_EQ(few.pairs[0].variants, 2);
  EXPECT_EQ(few.pairs[0].reason, "fewer than 3 variants have both");
  const Agreements alike = agreements_of(both(on("mqar", Numbers(8, 0.9)), on("lm", kBitsOf)));
  EXPECT_EQ(alike.pairs[0].reason, "all variants score alike on one of them");
}

TEST(AgreementReport, TablesAndLinesSayTheSame) {
  std::vector<Row> rows =
      both(both(on("mqar", kRecall), on("copy", {0.9, 0.8})), on("lm", kBitsOf));
  Row cut = scored("mqar", "hyena", 0.5);
  metrics_of(cut).ended_by = "steps";
  rows.push_back(cut);
  const Agreements found = agreements_of(rows);
  const std::vector<Table> tables = agreement_tables(found);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows,
            (std::vector<std::vector<std::string>>{{"mqar with lm", "8", "1.00", "0.83 to 0.99"}}));
  std::string notes;
  for (const std::string& note : tables[0].notes) notes += note + "\n";
  EXPECT_TRUE(says(notes, "no tau: fewer than 3 variants have both: copy with lm\n"));
  EXPECT_TRUE(says(notes, "left out, cut off by their steps (†): hyena on mqar\n"));
  EXPECT_TRUE(says(notes, "Student"));
  const std::vector<Json> lines = agreement_lines(found);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["tau"], 1.0);
  EXPECT_NEAR(lines[0]["interval"]["low"].get<double>(), 0.8320890289327013, 1e-9);
  EXPECT_TRUE(lines[0]["reason"].is_null());
  EXPECT_TRUE(lines[1]["tau"].is_null());
  EXPECT_EQ(lines[1]["reason"], "fewer than 3 variants have both");
  EXPECT_TRUE(says(lines[2]["reason"].get<std::string>(), "hyena"));
  for (const Json& line : lines) EXPECT_EQ(line["measure"], "agreement");
}

}  // namespace
}  // namespace attn::agreement_test
