// What checks say beside pass and fail: fitted costs, tied rows, promises that are not declared.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/memory.h"
#include "harness/check/contract.h"
#include "harness/check/fit.h"
#include "harness/check/tied_rows.h"
#include "harness/measure/peak_memory.h"
#include "tests/variants/undeclared.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::fit_test {
namespace {

// Formulas are found exactly where the figures are sums of the candidates, nearly where they are
// not quite, and not at all where they are something else.

const std::vector<std::vector<int>> kTerms = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1},
                                              {2, 1}, {0, 2}, {1, 2}, {2, 2}};

std::vector<CountedFigure> figures(const std::function<double(double, double)>& of) {
  std::vector<CountedFigure> all;
  for (const double n : {192, 384, 576, 768})
    for (const double d : {16, 32, 48, 64}) all.push_back({{n, d}, of(n, d)});
  return all;
}

TEST(Fit, FindsTheCoefficientsOfASum) {
  const auto seen = figures([](double n, double d) { return 4 * n * n * d - n / 2 + 3 * d * d; });
  const Formula found = fitted(kTerms, seen);
  EXPECT_EQ(worst_error(found, seen), 0);
  EXPECT_EQ(found.text({"n", "d"}), "-0.5 * n + 4 * n * n * d + 3 * d * d");
}

TEST(Fit, CoefficientsMayBeSimpleFractions) {
  const auto seen = figures([](double n, double d) { return 5 * n * n / 16 + n * d / 12; });
  EXPECT_EQ(worst_error(fitted(kTerms, seen), seen), 0);
  EXPECT_EQ(fitted(kTerms, seen).terms.size(), 2U);
}

TEST(Fit, NothingCountedIsNothing) {
  const auto seen = figures([](double, double) { return 0; });
  const Formula found = fitted(kTerms, seen);
  EXPECT_EQ(found.text({"n", "d"}), "0");
  EXPECT_EQ(worst_error(found, seen), 0);
}

TEST(Fit, LeavesOutWhatHardlyCounts) {
  const auto seen = figures([](double n, double d) { return 4 * n * d + 1.7 * std::sqrt(n); });
  const Formula found = fitted(kTerms, seen);
  EXPECT_LE(found.terms.size(), 2U) << found.text({"n", "d"});
  EXPECT_LE(worst_error(found, seen), 1.1 * kFitted);
  EXPECT_GT(worst_error(found, seen), 0);
}

TEST(Fit, IsFarOffWhereNoSumFits) {
  const auto seen = figures([](double n, double d) { return n > 500 ? n * d : 3 * n * n; });
  EXPECT_GT(worst_error(fitted(kTerms, seen), seen), 0.01);
}

// Candidates that the figures cannot tell apart: one of them is enough.
TEST(Fit, OfTwoAlikeOneIsTaken) {
  std::vector<CountedFigure> seen;
  for (const double n : {1, 2, 3, 4}) seen.push_back({{n, 7}, 5 * n});
  const Formula found = fitted({{1, 0}, {1, 1}}, seen);
  EXPECT_EQ(found.text({"n", "d"}), "5 * n");
}

TEST(Fit, AnErrorIsRelative) {
  const Formula twice{{{{1}, 2}}};
  EXPECT_DOUBLE_EQ(worst_error(twice, {{{4}, 10}}), 0.2);
  EXPECT_TRUE(std::isinf(worst_error(twice, {{{4}, 0}})));
}

// Which rows of a reference a tie of two candidates leaves open, and what they may be.

constexpr int64_t kRows = 64;
constexpr double kAllowed = 1e-3;

// Each query takes the value 1 of the first of two keys or the value -1 of the second: the one that
// is nearer to it.
oracle::Array nearest_of_two(const ReferenceInputs& x) {
  oracle::Array out(1, 1, x.q.len, 1);
  for (int64_t i = 0; i < x.q.len; ++i) {
    const double query = x.q.at(0, 0, i, 0);
    out.at(0, 0, i, 0) =
        std::abs(query - x.k.at(0, 0, 0, 0)) < std::abs(query - x.k.at(0, 0, 1, 0)) ? 1 : -1;
  }
  return out;
}

// Queries of which the first `ties` lie in the middle between the keys, but for less than
// rounding, and the others 0.1 from there.
ReferenceInputs queries(int64_t ties) {
  ReferenceInputs x{.q = {1, 1, kRows, 1},
                    .k = {1, 1, 2, 1},
                    .v = {1, 1, 2, 1},
                    .weights = {},
                    .config = {},
                    .mask = {}};
  x.k.at(0, 0, 0, 0) = 1;
  x.k.at(0, 0, 1, 0) = -1;
  for (int64_t i = 0; i < kRows; ++i) x.q.at(0, 0, i, 0) = i < ties ? 1e-22 : 0.1;
  return x;
}

Wanted with_ties(const Reference& reference, int64_t ties) {
  const ReferenceInputs x = queries(ties);
  Wanted wanted{reference(x), {}, {}};
  find_ties(reference, x, kAllowed, wanted);
  return wanted;
}

TEST(TiedRows, AreThoseThatRoundingMoves) {
  const Wanted found = with_ties(nearest_of_two, 2);
  ASSERT_EQ(found.tied.size(), kRows);
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(found.is_tied(row), row < 2) << "row " << row;
}

TEST(TiedRows, AreNoneWhereChoicesAreClear) {
  EXPECT_TRUE(with_ties(nearest_of_two, 0).tied.empty());
}

TEST(TiedRows, ExcuseNothingWhereManyTie) {
  EXPECT_TRUE(with_ties(nearest_of_two, 5).tied.empty());
}

TEST(TiedRows, AreNoneOfASmoothFunction) {
  EXPECT_TRUE(with_ties([](const ReferenceInputs& x) { return x.q; }, 2).tied.empty());
}

TEST(TiedRows, MayBeEitherChoiceAndNothingElse) {
  const Wanted wanted = with_ties(nearest_of_two, 2);
  const Tensor got = Tensor::full({1, 1, kRows, 1}, 1);
  for (const real choice : {1, -1}) {
    got[1] = choice;
    EXPECT_EQ(gap_to(got, wanted).size, 0) << choice;
  }
  got[1] = real(0.5);
  EXPECT_EQ(gap_to(got, wanted).size, 0.5);
  EXPECT_EQ(gap_to(got, wanted).row, 1);
  got[1] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_TRUE(std::isnan(gap_to(got, wanted).size));
  got[1] = 1;
  got[3] = -1;  // a clear choice
  EXPECT_EQ(gap_to(got, wanted).size, 2);
  EXPECT_EQ(gap_to(got, wanted).row, 3);
}

// A variant that declares no cost is measured all the same: FLOPs and memory are counted, bytes
// moved are unknown, its checks tell the figures, and its promises are still checked.

using attn_check::Level;
using attn_check::Outcome;

WorkloadSpec spec_of(const VariantInfo& info, Mode mode, ScopeKind scope = ScopeKind::attention) {
  WorkloadSpec spec;
  spec.variant = &info;
  spec.length = 128;
  spec.batch = 2;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.mode = mode;
  spec.scope = scope;
  spec.causal = mode == Mode::decode;
  return spec;
}

constexpr double kForward = 4.0 * 2 * 2 * 128 * 128 * 16;  // FLOPs

TEST(UndeclaredCost, FlopsOfAWorkloadAreCounted) {
  Workload forward(spec_of(undeclared(), Mode::forward));
  EXPECT_FALSE(forward.declares_cost());
  EXPECT_EQ(forward.flops(), kForward);
  EXPECT_EQ(forward.bytes(), std::nullopt);
  EXPECT_EQ(Workload(spec_of(undeclared(), Mode::train)).flops(), 3 * kForward);
  // Of a layer the dense products too: as much more as for a variant that declares its cost.
  const double around =
      Workload(spec_of(find_variant("full"), Mode::forward, ScopeKind::layer)).flops() -
      Workload(spec_of(find_variant("full"), Mode::forward)).flops();
  EXPECT_NEAR(Workload(spec_of(undeclared(), Mode::forward, ScopeKind::layer)).flops(),
              kForward + around, 0.001 * kForward);
  EXPECT_TRUE(Workload(spec_of(find_variant("full"), Mode::forward)).declares_cost());
}

TEST(UndeclaredCost, MemoryHasNothingToCompareWith) {
  Workload composed(spec_of(undeclared(), Mode::forward));
  const MemoryFigures found = measure_memory(composed);
  EXPECT_EQ(found.declared_extra_bytes, std::nullopt);
  EXPECT_EQ(found.state_bytes, std::nullopt) << "it cannot decode";
  EXPECT_EQ(found.extra_bytes, 2 * 2 * 128 * (3 * 128 + 16) * static_cast<int64_t>(sizeof(real)));
}

TEST(UndeclaredCost, StatesAreHeldByADecoder) {
  Workload with(spec_of(find_variant("linear"), Mode::forward)),
      without(spec_of(undeclared_linear(), Mode::forward));
  EXPECT_EQ(without.state_bytes(), with.state_bytes());
  Workload step(spec_of(undeclared_linear(), Mode::decode));
  EXPECT_TRUE(step.declares_cost()) << "a decoder declares its step";
  EXPECT_GT(step.flops(), 0);
}

TEST(UndeclaredCost, PassesItsChecksAndTellsTheFigures) {
  for (const VariantInfo* info : {&undeclared(), &undeclared_linear()})
    for (const char* name : {"flops", "memory"}) {
      const auto results = check_variant(*info, {}, Level::quick, name);
      ASSERT_EQ(results.size(), 1U);
      EXPECT_EQ(results[0].outcome, Outcome::skipped) << results[0].detail;
      for (const char* told : {"not declared", "length 300", "length 600", "--derive"})
        EXPECT_TRUE(says(results[0].detail, told));
    }
  const auto results = check_variant(undeclared(), {}, Level::quick, "flops");
  EXPECT_TRUE(says(results[0].detail, fmt::format("{:.4g} FLOPs", 4.0 * 4 * 300 * 300 * 16)));
  EXPECT_TRUE(all_passed(check_variant(undeclared_linear(), {}, Level::quick)));
}

TEST(UndeclaredCost, APromiseToGrowLinearlyIsStillChecked) {
  VariantInfo liar = undeclared();
  liar.traits.linear_time = liar.traits.linear_memory = true;
  for (const char* name : {"flops", "memory"}) {
    const auto results = check_variant(liar, {}, Level::quick, name);
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].outcome, Outcome::failed) << results[0].detail;
    EXPECT_TRUE(says(results[0].detail, "promised linear"));
  }
}

}  // namespace
}  // namespace attn::fit_test
