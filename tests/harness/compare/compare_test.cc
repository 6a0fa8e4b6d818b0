// Verdicts on planted changes: of times, bytes, errors and scores; what is paired, refused and left
// out.
#include "harness/compare/compare.h"

#include <gtest/gtest.h>

#include "core/base/check.h"
#include "tests/harness/compare/rows_of_sweep.h"
#include "tests/said.h"

namespace attn::compare_test {
namespace {

using namespace rows_of_sweep;

std::vector<double> around(double time) { return {0.999 * time, time, 1.001 * time}; }

Compared only(const Row& before, const Row& after, const CompareRequest& request = {}) {
  const Comparison comparison = compare(file({before}), file({after}), request);
  EXPECT_EQ(comparison.pairs.size(), 1u);
  return comparison.pairs.empty() ? Compared{} : comparison.pairs[0];
}

Judgement verdict(const Row& before, const Row& after, double threshold = 0.02) {
  return only(before, after, {.threshold = threshold}).verdict;
}

TEST(Compare, TimesAreSlowerFasterSameOrUndecided) {
  const Row before = speed("linear", 64, around(1));
  EXPECT_EQ(verdict(before, speed("linear", 64, around(1.05))), Judgement::worse);
  EXPECT_EQ(verdict(before, speed("linear", 64, around(1 / 1.05))), Judgement::better);
  EXPECT_EQ(verdict(before, before), Judgement::same);
  EXPECT_EQ(verdict(before, speed("linear", 64, around(1.01))), Judgement::same);
  EXPECT_EQ(verdict(before, speed("linear", 64, {0.9, 1.05, 1.2})), Judgement::undecided);
  EXPECT_EQ(verdict(before, speed("linear", 64, around(1.05)), 0.1), Judgement::same);
  EXPECT_EQ(verdict(before, speed("linear", 64, around(1.01)), 0.001), Judgement::worse);
}

// Logarithms of the visits' medians -d, 0, d: deviation d; t of 4 degrees 2.7764.
TEST(Compare, TheIntervalIsWelchsOnLogarithms) {
  const double d = std::log(1.01), middle = std::log(1.1);
  const Compared pair =
      only(speed("linear", 64, {std::exp(-d), 1, std::exp(d)}),
           speed("linear", 64, {std::exp(middle - d), std::exp(middle), std::exp(middle + d)}));
  const double reach = 2.7764451 * d * std::sqrt(2.0 / 3);
  EXPECT_NEAR(pair.change.value(), 1.1, 1e-9);
  EXPECT_NEAR(pair.low.value(), std::exp(middle - reach), 1e-7);
  EXPECT_NEAR(pair.high.value(), std::exp(middle + reach), 1e-7);
  EXPECT_EQ(pair.basis, "3 and 3 visits");
}

TEST(Compare, OneVisitIsUndecided) {
  Row before = speed("linear", 64, {1}), after = speed("linear", 64, {2});
  const Compared pair = only(before, after);
  EXPECT_EQ(pair.verdict, Judgement::undecided);
  EXPECT_FALSE(pair.p);
  EXPECT_NEAR(pair.change.value(), 2, 1e-12);
}

// One change that alone would be sure drowns among many pairs.
TEST(Compare, AllPairsAreCorrectedTogether) {
  const std::vector<double> slow = {1.04, 1.05, 1.06};
  EXPECT_EQ(verdict(speed("linear", 64, around(1)), speed("linear", 64, slow), 0),
            Judgement::worse);
  std::vector<Row> before, after;
  for (int64_t length = 1; length <= 6; length++) {
    before.push_back(speed("linear", length, around(1)));
    after.push_back(
        speed("linear", length, length == 1 ? slow : std::vector<double>{0.96, 1, 1.04}));
  }
  const Comparison all = compare(file(before), file(after), {.threshold = 0});
  EXPECT_EQ(all.count(Judgement::worse), 0);
  EXPECT_NEAR(all.pairs[0].corrected.value(), 6 * all.pairs[0].p.value(), 1e-12);
}

// Where nothing says by how much, and it takes no power from the others.
TEST(Compare, ADisturbanceThatNothingBoundsDecidesNothing) {
  Row after = speed("linear", 64, around(2));
  after.result.noisy = {Noise::switches};
  const Compared pair = only(speed("linear", 64, around(1)), after);
  EXPECT_EQ(pair.verdict, Judgement::undecided);
  EXPECT_FALSE(pair.p);
  EXPECT_EQ(pair.basis, "3 and 3 visits, disturbed");
  Row same = speed("linear", 64, around(1));
  same.result.noisy = {Noise::witness};
  EXPECT_EQ(only(same, speed("linear", 64, around(1))).verdict, Judgement::same);
}

// Visits on a machine that was up to 2.5 times as slow: 14.9 times, 8.1 to 27.3 by their scatter.
Row on_a_busy_machine() {
  Row slow = speed("linear", 64, {14.9 / 1.276, 14.9, 14.9 * 1.276});
  slow.result.witness.flops_per_s = {8e8, 4e8, 5e8};
  slow.result.witness.copy_bytes_per_s = {1e9, 1e9, 1e9};
  slow.result.noisy = {Noise::witness};
  return slow;
}

Row with_witness(Row row, double flops_per_s) {
  row.result.witness.flops_per_s.assign(3, flops_per_s);
  row.result.witness.copy_bytes_per_s.assign(3, 1e9);
  return row;
}

TEST(Compare, AChangeThatNoDisturbanceExplainsIsFound) {
  const Row calm = with_witness(speed("linear", 64, around(1)), 1e9);
  const Comparison found = compare(file({calm}), file({on_a_busy_machine()}), {});
  const Compared& pair = found.pairs.at(0);
  EXPECT_EQ(pair.verdict, Judgement::worse);
  EXPECT_TRUE(found.has_regression());
  EXPECT_GT(pair.low.value(), 14.9 / 2.5);
  EXPECT_LT(pair.low.value(), 8.1 / 0.8) << "the calmest visit has a bound too";
  EXPECT_NEAR(pair.change.value(), 14.9 / 1.276 / 0.999, 1e-9) << "of the fastest visits";
  EXPECT_LT(pair.corrected.value(), 0.05);
  EXPECT_EQ(pair.basis, fmt::format("3 and 3 visits, disturbed, interval widened by {:.3g} x",
                                    pair.widened.value()));
  EXPECT_TRUE(found.notes.back().starts_with("1 time was judged with the interval widened"))
      << found.notes.back();
  EXPECT_EQ(verdict(on_a_busy_machine(), calm), Judgement::better);
}

// Twice as long, on a machine that may have been 2.5 times as slow.
TEST(Compare, AChangeThatTheDisturbanceMayExplainIsUndecided) {
  Row after = with_witness(speed("linear", 64, around(2)), 4e8);
  after.result.noisy = {Noise::witness};
  const Row calm = with_witness(speed("linear", 64, around(1)), 1e9);
  const Compared pair = only(calm, after);
  EXPECT_EQ(pair.verdict, Judgement::undecided);
  EXPECT_LT(pair.low.value(), 1);
  EXPECT_GT(pair.high.value(), 2);
  EXPECT_EQ(verdict(calm, with_witness(speed("linear", 64, around(2)), 4e8)), Judgement::worse)
      << "not marked";
}

TEST(Compare, AcrossMachinesTheDisturbanceOfExactAttentionCountsToo) {
  const auto rows = [](double linear, double full_witness) {
    std::vector<Row> both = {with_witness(speed("full", 64, around(8)), full_witness),
                             with_witness(speed("linear", 64, around(linear)), 1e9),
                             with_witness(speed("performer", 64, around(1)), 1e9)};
    both[1].result.noisy = {Noise::witness};
    return both;
  };
  const auto verdict_at = [&](double linear, double full_witness) {
    return compare(file(rows(1, full_witness), "A"), file(rows(linear, full_witness), "B"),
                   {.across_machines = true})
        .pairs.at(0)
        .verdict;
  };
  EXPECT_EQ(verdict_at(3, 1e9), Judgement::worse);
  EXPECT_EQ(verdict_at(3, 2.5e8), Judgement::undecided);
  EXPECT_EQ(verdict_at(30, 2.5e8), Judgement::worse);
}

TEST(Compare, BytesCompareByTheirRatio) {
  const Row before = memory("linear", 64, 1000);
  EXPECT_EQ(verdict(before, memory("linear", 64, 1021)), Judgement::worse);
  EXPECT_EQ(verdict(before, memory("linear", 64, 1020)), Judgement::same);
  EXPECT_EQ(verdict(before, memory("linear", 64, 980)), Judgement::better);
  EXPECT_EQ(verdict(before, memory("linear", 64, 1001), 0), Judgement::worse);
  EXPECT_DOUBLE_EQ(only(before, memory("linear", 64, 1500)).change.value(), 1.5);
}

TEST(Compare, ErrorsOfRoundingAreTheSame) {
  EXPECT_EQ(verdict(fidelity(3e-7), fidelity(9e-7)), Judgement::same);
  EXPECT_EQ(verdict(fidelity(0), fidelity(9e-6)), Judgement::same);
  EXPECT_EQ(verdict(fidelity(3e-7), fidelity(3e-4)), Judgement::worse);
  EXPECT_EQ(verdict(fidelity(0.5), fidelity(0.4)), Judgement::better);
  EXPECT_EQ(verdict(reach(40, 0), reach(30, 0)), Judgement::worse) << "it reaches less far";
  EXPECT_EQ(verdict(reach(40, 0), reach(0, 63)), Judgement::better);
  EXPECT_EQ(verdict(reach(0, 0), reach(0, 0)), Judgement::same);
}

Comparison seeds(const std::vector<double>& before, const std::vector<double>& after,
                 const std::string& metric = "accuracy") {
  std::vector<Row> there, here;
  for (size_t i = 0; i < before.size(); i++) {
    there.push_back(accuracy(before[i], static_cast<int64_t>(i), metric));
    here.push_back(accuracy(after[i], static_cast<int64_t>(i), metric));
  }
  return compare(file(there), file(here), {});
}

TEST(Compare, ScoresArePairedBySeed) {
  // Differences 0.10, 0.11, 0.12: mean 0.11, deviation 0.01; t of 2 degrees 4.3027.
  const Comparison lost = seeds({0.9, 0.5, 0.7}, {0.8, 0.39, 0.58});
  ASSERT_EQ(lost.pairs.size(), 1u) << "seeds are one pair";
  const Compared& pair = lost.pairs[0];
  EXPECT_EQ(pair.verdict, Judgement::worse);
  EXPECT_EQ(pair.basis, "3 seeds");
  EXPECT_NEAR(pair.change.value(), -0.11, 1e-9);
  EXPECT_NEAR(pair.low.value(), -0.11 - 4.3026527 * 0.01 / std::sqrt(3), 1e-7);
  EXPECT_NEAR(pair.high.value(), -0.11 + 4.3026527 * 0.01 / std::sqrt(3), 1e-7);
  EXPECT_EQ(seeds({0.8, 0.39, 0.58}, {0.9, 0.5, 0.7}).pairs[0].verdict, Judgement::better);
  EXPECT_EQ(seeds({0.9, 0.5}, {0.9, 0.5}).pairs[0].verdict, Judgement::same);
  EXPECT_EQ(seeds({0.9, 0.5}, {0.7, 0.6}).pairs[0].verdict, Judgement::undecided);
  EXPECT_EQ(seeds({0.9}, {0.1}).pairs[0].verdict, Judgement::undecided);
}

TEST(Compare, OfSquaredErrorsLessIsBetter) {
  const char* const metric = "mean_squared_error";
  EXPECT_EQ(seeds({2, 3, 5}, {4.0, 6.1, 10.2}, metric).pairs[0].verdict, Judgement::worse);
  EXPECT_EQ(seeds({4.0, 6.1, 10.2}, {2, 3, 5}, metric).pairs[0].verdict, Judgement::better);
  EXPECT_NEAR(seeds({2, 3}, {4, 6}, metric).pairs[0].change.value(), 2, 1e-9);
}

TEST(Compare, OneSeedIsComparedByItsExamples) {
  const std::string right(50, 'f'), mostly = std::string(30, 'f') + std::string(20, '7');
  const Row before = scored_examples(200, right), after = scored_examples(200, mostly);
  const Compared pair = only(before, after);
  EXPECT_EQ(pair.verdict, Judgement::worse);
  EXPECT_EQ(pair.basis, "200 examples of one seed");
  EXPECT_NEAR(pair.change.value(), -0.1, 1e-12);
  EXPECT_LT(pair.low.value(), -0.1);
  EXPECT_GT(pair.high.value(), -0.1);
  EXPECT_EQ(verdict(after, before), Judgement::better);
  EXPECT_EQ(verdict(before, before), Judgement::same);
  EXPECT_EQ(verdict(before, scored_examples(200, mostly, 2, "00000000000000bb")),
            Judgement::undecided)
      << "other examples";
}

// 5 of 8 examples lost and none won: McNemar says 2 / 2^5 = 0.0625, the interval alone would not
// do.
TEST(Compare, OfFewExamplesMcNemarDecides) {
  const Compared pair = only(scored_examples(8, "ff"), scored_examples(8, "07"), {.threshold = 0});
  EXPECT_DOUBLE_EQ(pair.p.value(), 0.0625);
  EXPECT_EQ(pair.verdict, Judgement::undecided);
}

TEST(Compare, SharesOfRightLabelsAreCompared) {
  const Row before = scored_examples(40, std::string(40, 'f'), 16);
  const Row after = scored_examples(40, std::string(20, 'c') + std::string(20, 'a'), 16);
  EXPECT_EQ(verdict(before, after), Judgement::worse);
  EXPECT_EQ(verdict(before, before), Judgement::same);
}

TEST(Compare, RefusesTimesOfTwoMachinesOrBuilds) {
  const Row timed = speed("linear", 64, around(1));
  const auto message = [](const RowsFile& before, const RowsFile& after, CompareRequest request) {
    return fault_of([&] { compare(before, after, request); });
  };
  const std::string machines = message(file({timed}, "A"), file({timed}, "B"), {});
  EXPECT_TRUE(says(machines, "cpu_model: \"A\" and \"B\""));
  const std::string builds = message(file({timed}, "A", "-O3"), file({timed}, "A", "-O2"), {});
  EXPECT_TRUE(says(builds, "flags: \"-O3\" and \"-O2\""));
  EXPECT_EQ(message(file({timed}, "A", "-O3"), file({timed}, "A", "-O2"), {.across_builds = true}),
            "");
  EXPECT_NE(message(file({timed}, "A"), file({timed}, "B"), {.across_builds = true}), "");
  const Row held = memory("linear", 64, 1);
  EXPECT_EQ(message(file({held}, "A"), file({held}, "B"), {}), "") << "bytes do not depend on it";
}

TEST(Compare, AcrossMachinesARatioToExactAttentionIsCompared) {
  const std::vector<Row> slow = {speed("full", 64, around(4)), speed("linear", 64, around(2)),
                                 speed("linear", 128, around(3))};
  const std::vector<Row> fast = {speed("full", 64, around(2)), speed("linear", 64, around(1.5)),
                                 speed("linear", 128, around(3))};
  const Comparison found = compare(file(slow, "A"), file(fast, "B"), {.across_machines = true});
  ASSERT_EQ(found.pairs.size(), 1u) << "exact attention is compared with nothing";
  EXPECT_NEAR(found.pairs[0].before, 0.5, 1e-9);
  EXPECT_NEAR(found.pairs[0].after, 0.75, 1e-9);
  EXPECT_NEAR(found.pairs[0].change.value(), 1.5, 1e-9);
  EXPECT_EQ(found.pairs[0].verdict, Judgement::worse);
  ASSERT_EQ(found.left_out.size(), 1u);
  EXPECT_TRUE(says(found.left_out[0].reason, "full"));
}

TEST(Compare, CellsWithoutAFigureAreLeftOutWithTheReason) {
  const Row good = memory("linear", 64, 10);
  Row failed = good, skipped = good, gated = good;
  failed.result = {.status = Status::timeout, .reason = "600 s"};
  skipped.result = {.status = Status::skipped, .reason = "cannot be causal"};
  gated.result = {.status = Status::failed, .reason = "causality", .is_gated = true};
  Row noisy = speed("linear", 64, around(1));
  noisy.result.noisy = {Noise::witness, Noise::stopped};
  const auto reason = [](const Row& before, const Row& after) {
    const Comparison found = compare(file({before}), file({after}), {});
    EXPECT_TRUE(found.pairs.empty());
    return found.left_out.size() == 1 ? found.left_out[0].reason : "";
  };
  EXPECT_EQ(reason(good, failed), "NEW: timeout: 600 s");
  EXPECT_EQ(reason(failed, good), "OLD: timeout: 600 s");
  EXPECT_EQ(reason(skipped, skipped), "both: skipped: cannot be causal");
  EXPECT_EQ(reason(gated, good), "OLD: a contract check is red: causality");
  EXPECT_EQ(reason(noisy, speed("linear", 64, around(1))), "OLD: its process was stopped");
}

TEST(Compare, PairsWhatWasMeasuredWhateverItsSources) {
  Row before = memory("linear", 64, 10), after = before;
  after.key.source.variant = "another";
  after.cell = "another";
  EXPECT_EQ(verdict(before, after), Judgement::same);
  after.key.axes.mode = Mode::train;
  const Comparison none = compare(file({before, memory("full", 64, 1)}), file({after}), {});
  EXPECT_EQ(none.before_only, 2);
  EXPECT_EQ(none.after_only, 1);
  EXPECT_TRUE(none.pairs.empty());
  EXPECT_THROW(compare(file({before, before}), file({before}), {}), Error);
}

TEST(Compare, OtherMeasuresAreLeftAlone) {
  const std::vector<Row> rows = {memory("linear", 64, 10), speed("linear", 64, around(1))};
  const Comparison found =
      compare(file(rows, "A"), file(rows, "B"), {.measures = {Measure::memory}});
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].measure, Measure::memory);
  EXPECT_EQ(found.before_only + found.after_only, 0);
}

// Visits decide, of which there may be more than the floor is of; the floor is told.
TEST(Compare, ANoiseFloorIsToldAndIsNoThreshold) {
  const auto timed = [](double time) {
    std::vector<Row> rows = {speed("linear", 64, around(time)), speed("linear", 512, around(time))};
    for (Row& row : rows) row.key.axes.threads = 1;
    return file(rows);
  };
  RowsFile before = timed(1), after = timed(1.04);
  const auto told = [&] {
    for (const std::string& note : compare(before, after, {}).notes)
      if (note.starts_with("noise floor")) return note;
    return std::string();
  };
  EXPECT_EQ(told(), "");
  before.run.noise_floor = {
      {.threads = 1, .length = 64, .share = 0.5, .measured_at = "2026-01-31T12:00:00Z"},
      {.threads = 1, .length = 512, .share = 0.05, .measured_at = "2026-01-31T12:00:00Z"}};
  EXPECT_EQ(compare(before, after, {}).count(Judgement::worse), 2);
  EXPECT_EQ(told(),
            "noise floor of this machine for cells of 3 visits: 5.0 to 50.0 % (attnbench noise, "
            "2026-01-31); the verdicts follow from the visits of these files");
}

// The only cell that has the axis at all.
TEST(Compare, ALabelTellsSharedKeysFromOwnOnes) {
  Row shared = memory("linear", 64, 100);
  shared.key.axes.kv_heads = 2;
  const RowsFile rows = file({memory("linear", 64, 100), shared});
  const Comparison comparison = compare(rows, rows, {});
  ASSERT_EQ(comparison.pairs.size(), 2u);
  EXPECT_EQ(comparison.pairs[0].label, "linear length=64");
  EXPECT_EQ(comparison.pairs[1].label, "linear length=64 kv_heads=2");
}

TEST(Compare, SaysWhatNoiseHidesAndWhatAllTimesShare) {
  std::vector<Row> before, after;
  for (int64_t length = 1; length <= 6; length++) {
    before.push_back(speed("linear", length, around(1)));
    after.push_back(speed("linear", length, around(1.04)));
  }
  const std::vector<std::string> notes = compare(file(before), file(after), {}).notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[0].starts_with("noise: ")) << notes[0];
  EXPECT_TRUE(says(notes[1], "+4.0 %"));
}

}  // namespace
}  // namespace attn::compare_test
