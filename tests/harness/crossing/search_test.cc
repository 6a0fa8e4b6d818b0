// The length from which one variant is faster: contests and the search.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "harness/crossing/contests.h"
#include "harness/crossing/report.h"
#include "harness/crossing/search.h"
#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::search_test {
namespace {

// Contests from cells and rows, and what tables say of them.

using rows_of_sweep::plugin;

Plugin materialized() {
  Plugin full = plugin("full");
  full.params =
      Params("full", find_variant("full").params, {{"kernel", std::string("materialized")}});
  return full;
}

Row timed(const Plugin& variant, int64_t length, double seconds) {
  Row row = rows_of_sweep::speed(variant.name, length, {seconds, seconds * 1.01, seconds * 0.99});
  row.key.variant = variant;
  return row;
}

Row held(const Plugin& variant, int64_t length, int64_t bytes) {
  Row row = rows_of_sweep::memory(variant.name, length, bytes);
  row.key.variant = variant;
  return row;
}

RunConfig asking(const std::vector<Plugin>& variants) {
  RunConfig config;
  SweepConfig& sweep = config.sweeps.emplace_back();
  for (const Plugin& variant : variants) sweep.variants.push_back(plugin_text(variant));
  return config;
}

std::vector<std::string> outcomes(const std::vector<Row>& rows,
                                  const std::vector<Plugin>& variants) {
  const auto contests = contests_of(rows, asking(variants));
  std::vector<std::string> texts;
  for (const Json& line : crossing_lines(contests, standings(contests, rows)))
    texts.push_back(line["outcome"].get<std::string>());
  return texts;
}

TEST(Contests, RivalsAreTheKernelsOfExactAttention) {
  EXPECT_EQ(rivals_spec(), "full[kernel=[tiled,materialized]]");
}

TEST(Contests, EachVariantMeetsEachRivalOnce) {
  std::vector<CellKey> variants, rivals;
  for (const int64_t length : {64, 512})
    for (const Plugin& variant : {plugin("full"), materialized(), plugin("linear")}) {
      variants.push_back(timed(variant, length, 1).key);
      if (variant.name == "full") rivals.push_back(variants.back());
    }
  variants.push_back(variants.back());
  variants.back().axes.mode = Mode::train;  // of a group without a rival
  const auto contests = contests_of(variants, rivals);
  ASSERT_EQ(contests.size(), 3u);
  EXPECT_EQ(contests[0].variant, plugin("full"));
  EXPECT_EQ(contests[0].rival, materialized());
  for (const size_t i : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(contests[i].variant, plugin("linear"));
    EXPECT_EQ(contests[i].low, 64);
    EXPECT_EQ(contests[i].high, 512);
    EXPECT_TRUE(is_of(contests[i], variants[0]) == (contests[i].rival == plugin("full")));
  }
  EXPECT_FALSE(is_of(contests[1], variants.back())) << "another mode";
}

TEST(Contests, OnlyVariantsThatWereAskedForAreSearched) {
  const std::vector<Row> rows = {timed(plugin("full"), 64, 1), timed(materialized(), 64, 2),
                                 timed(plugin("linear"), 64, 3)};
  EXPECT_EQ(contests_of(rows, asking({plugin("linear")})).size(), 2u);
  EXPECT_EQ(contests_of(rows, asking({plugin("linear"), plugin("full")})).size(), 3u);
}

TEST(Contests, SaysWhatThereIsWithoutACrossing) {
  const std::vector<Plugin> linear = {plugin("linear")};
  std::vector<Row> rows;
  const auto add = [&](int64_t length, double mine, double theirs) {
    rows.push_back(timed(plugin("linear"), length, mine));
    rows.push_back(timed(plugin("full"), length, theirs));
  };
  add(64, 1, 2);
  add(512, 1, 4);
  EXPECT_EQ(outcomes(rows, linear)[0], "faster at every length from 64 to 512");
  add(128, 1, 1);
  EXPECT_EQ(outcomes(rows, linear)[0], "faster from 64 to 512; undecided at 128");
  add(32, 1, 1);
  EXPECT_EQ(outcomes(rows, linear)[0], "faster from 64 to 512; undecided at 32, 128");
  add(160, 1, 1);
  add(192, 1, 1);
  EXPECT_EQ(outcomes(rows, linear)[0],
            "faster from 64 to 512; undecided at 4 lengths between 32 and 192");
  rows.clear();
  add(64, 2, 1);
  add(512, 2, 1);
  EXPECT_EQ(outcomes(rows, linear)[0], "slower at every length from 64 to 512");
  rows.clear();
  add(64, 1, 1);
  add(512, 1, 1);
  EXPECT_EQ(outcomes(rows, linear)[0],
            "undecided: times differ by less than their uncertainty from 64 to 512");
}

TEST(Contests, MemoryIsTheExactPeak) {
  std::vector<Row> rows;
  for (const int64_t length : {64, 100, 104, 256}) {
    rows.push_back(held(plugin("linear"), length, 102 * 100));
    rows.push_back(held(plugin("full"), length, length * 100));
  }
  const auto contests = contests_of(rows, asking({plugin("linear")}));
  const auto found = standings(contests, rows);
  const Json line = crossing_lines(contests, found)[0];
  EXPECT_EQ(line["outcome"], "less from 102");
  EXPECT_EQ(line["low"], 100);
  EXPECT_EQ(line["high"], 104);
  EXPECT_EQ(line["narrow"], true);
  const std::vector<Table> tables = crossing_tables(contests, found);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows[0][3], "100 to 104");
}

TEST(Contests, ALengthThatFailedIsLeftOutAndNamed) {
  std::vector<Row> rows = {timed(plugin("linear"), 64, 1), timed(plugin("full"), 64, 2),
                           timed(plugin("linear"), 512, 1), timed(plugin("full"), 512, 2)};
  rows[3].result.status = Status::oom;
  rows[3].result.reason = "over 1 GiB";
  rows[1].result.noisy = {Noise::steal};
  const auto contests = contests_of(rows, asking({plugin("linear")}));
  const auto found = standings(contests, rows);
  EXPECT_EQ(found[0].curve.unusable, std::set<int64_t>{512});
  EXPECT_EQ(found[0].why_unusable, "full oom: over 1 GiB");
  EXPECT_EQ(found[0].noisy, 1u);
  EXPECT_EQ(outcomes(rows, {plugin("linear")})[0], "faster at every length from 64 to 64");
}

TEST(Contests, CountsCellsOnceAndThoseOfAGrid) {
  std::vector<Row> rows;
  for (const int64_t length : {64, 128})
    for (const Plugin& variant : {plugin("full"), plugin("linear"), plugin("truncated")})
      rows.push_back(timed(variant, length, 1));
  const auto contests = contests_of(rows, asking({plugin("linear"), plugin("truncated")}));
  const CellCounts counts = cell_counts(contests, standings(contests, rows));
  EXPECT_EQ(counts.measured, 6u);
  EXPECT_EQ(counts.of_grid, 3u * 9u) << "1.1^8 is the first power above 2";
}

// The search on curves that are known: no crossing, several, lengths that cannot be measured,
// exact amounts, and searches that are cut short.

using Ratio = std::function<double(double length)>;

struct Searched {
  Curve curve;
  SearchState state;
};

RatioPoint point_of(const Ratio& ratio, int64_t length, double error) {
  return {length,
          {.value = std::log(ratio(static_cast<double>(length))), .error = error, .degrees = 8}};
}

Searched search(const Ratio& ratio, double error, Curve curve = {.low = 64, .high = 8192}) {
  const std::set<int64_t> refused = curve.unusable;
  curve.unusable.clear();
  SearchState state = search_step(curve);
  for (int steps = 0; !state.next.empty() && steps < 100; steps++) {
    for (const int64_t length : state.next)
      if (refused.count(length))
        curve.unusable.insert(length);
      else
        curve.points.push_back(point_of(ratio, length, error));
    state = search_step(curve);
  }
  EXPECT_TRUE(state.next.empty()) << "the search does not end";
  return {curve, state};
}

size_t lengths_of(const Searched& searched) {
  return searched.curve.points.size() + searched.curve.unusable.size();
}

TEST(Search, BeginsWithTheEndsAndRatiosOfAboutFour) {
  EXPECT_EQ(first_lengths(64, 16384), (std::vector<int64_t>{64, 256, 1024, 4096, 16384}));
  EXPECT_EQ(first_lengths(64, 100), (std::vector<int64_t>{64, 100}));
  EXPECT_EQ(first_lengths(7, 7), std::vector<int64_t>{7});
  EXPECT_EQ(search_step({.low = 64, .high = 256}).next, (std::vector<int64_t>{64, 256}));
}

TEST(Search, PrefersLengthsThatTilesDivide) {
  EXPECT_EQ(even_length(1003), 1008);
  EXPECT_EQ(even_length(333), 336);
  EXPECT_EQ(even_length(161), 160);
  EXPECT_EQ(even_length(90), 92);
  EXPECT_EQ(even_length(13), 13);
  EXPECT_EQ(even_length(0.2), 1);
  for (int n = 1; n < 5000; n++)
    EXPECT_LE(std::abs(static_cast<double>(even_length(n) - n)), kNarrow * n / 2) << n;
}

TEST(Search, FindsACrossing) {
  for (const double at : {70.0, 100.0, 640.0, 1024.0, 5000.0, 7000.0}) {
    const Searched found = search([&](double n) { return std::pow(at / n, 0.8); }, 0.01);
    ASSERT_EQ(found.state.crossings.size(), 1u) << at;
    const Crossing& crossing = found.state.crossings[0];
    EXPECT_TRUE(crossing.is_found && crossing.is_narrow && crossing.is_less_after) << at;
    EXPECT_NEAR(crossing.at, at, 0.001 * at);
    EXPECT_LT(crossing.low, at);
    EXPECT_GT(crossing.high, at);
    EXPECT_GE(crossing.low, 0.95 * crossing.at);
    EXPECT_LE(crossing.high, 1.05 * crossing.at);
    EXPECT_LE(lengths_of(found), 12u) << at;
  }
}

TEST(Search, OfAVariantThatBecomesSlower) {
  const Searched found = search([](double n) { return n / 700; }, 0.01);
  ASSERT_EQ(found.state.crossings.size(), 1u);
  EXPECT_FALSE(found.state.crossings[0].is_less_after);
  EXPECT_NEAR(found.state.crossings[0].at, 700, 1);
}

TEST(Search, WithoutACrossingTakesTheFirstLengthsAlone) {
  for (const double ratio : {0.5, 2.0}) {
    const Searched found = search([&](double) { return ratio; }, 0.02);
    EXPECT_TRUE(found.state.crossings.empty());
    EXPECT_EQ(lengths_of(found), first_lengths(64, 8192).size());
    for (const auto& [length, sign] : found.state.signs) EXPECT_EQ(sign, ratio < 1 ? -1 : 1);
  }
}

TEST(Search, LeavesEqualTimesUndecided) {
  const Searched found = search([](double n) { return n < 4000 ? 1.001 : 0.5; }, 0.02);
  EXPECT_TRUE(found.state.crossings.empty());
  EXPECT_EQ(found.state.signs.front().second, 0);
  EXPECT_EQ(found.state.signs.back().second, -1);
}

TEST(Search, GivesABracketWhereTheRatioIsTooFlat) {
  const Searched found = search([](double n) { return std::pow(700 / n, 0.03); }, 0.01);
  ASSERT_EQ(found.state.crossings.size(), 1u);
  const Crossing& crossing = found.state.crossings[0];
  EXPECT_FALSE(crossing.is_narrow);
  EXPECT_LT(crossing.low, 700);
  EXPECT_GT(crossing.high, 700);
  EXPECT_LE(lengths_of(found), kMostLengths);
}

TEST(Search, EndsWithTheMostLengthsWhereNothingIsSharp) {
  const auto wave = [](double n) { return std::exp(std::sin(3 * std::log(n))); };
  EXPECT_EQ(lengths_of(search(wave, 0.1)), kMostLengths);
}

TEST(Search, FindsSeveralCrossings) {
  // Slower below 200, faster up to 2000, slower beyond.
  const Searched found =
      search([](double n) { return std::exp(std::log(n / 200) * std::log(n / 2000)); }, 0.01);
  ASSERT_EQ(found.state.crossings.size(), 2u);
  EXPECT_TRUE(found.state.crossings[0].is_less_after);
  EXPECT_NEAR(found.state.crossings[0].at, 200, 10);
  EXPECT_FALSE(found.state.crossings[1].is_less_after);
  EXPECT_NEAR(found.state.crossings[1].at, 2000, 100);
}

// A length near a crossing that seems to be on the wrong side makes no crossing of its own.
TEST(Search, TakesNoiseNearACrossingForOne) {
  Curve curve{.low = 64, .high = 8192};
  const auto add = [&](int64_t length, double ratio) {
    curve.points.push_back(point_of([&](double) { return ratio; }, length, 0.005));
  };
  for (const int64_t length : first_lengths(64, 8192)) add(length, length < 700 ? 2 : 0.5);
  for (const int64_t length : {608, 640}) add(length, 1.06);
  for (const int64_t length : {736, 768}) add(length, 0.94);
  ASSERT_EQ(search_step(curve).crossings.size(), 1u);
  add(672, 0.97);
  add(704, 1.03);
  const SearchState noisy = search_step(curve);
  ASSERT_EQ(noisy.crossings.size(), 1u);
  EXPECT_TRUE(noisy.crossings[0].is_less_after);
  curve.points.clear();
  for (const int64_t length : first_lengths(64, 8192)) add(length, 0.5);
  for (const int64_t length : {624, 720}) add(length, 0.94);
  add(672, 1.03);
  EXPECT_TRUE(search_step(curve).crossings.empty()) << "faster on both sides";
}

TEST(Search, PassesOverLengthsThatCannotBeMeasured) {
  std::set<int64_t> refused = {8192};
  for (int64_t length = 16; length < 8192; length += 32) refused.insert(length);
  const Searched found = search([](double n) { return 900 / n; }, 0.01,
                                {.low = 64, .high = 8192, .unusable = refused});
  ASSERT_EQ(found.state.crossings.size(), 1u);
  EXPECT_TRUE(found.state.crossings[0].is_narrow);
  EXPECT_NEAR(found.state.crossings[0].at, 900, 1);
  std::set<int64_t> all;
  for (int64_t length = 1; length <= 8192; length++) all.insert(length);
  const Searched none =
      search([](double) { return 1.0; }, 0.01, {.low = 64, .high = 8192, .unusable = all});
  EXPECT_TRUE(none.state.signs.empty());
}

TEST(Search, ExactAmountsAreEnclosed) {
  for (const double at : {66.5, 100.5, 640.5, 5000.5}) {
    const Searched found = search([&](double n) { return at / n; }, 0);
    ASSERT_EQ(found.state.crossings.size(), 1u) << at;
    const Crossing& crossing = found.state.crossings[0];
    EXPECT_TRUE(crossing.is_found && crossing.is_narrow) << at;
    EXPECT_LT(crossing.low, at);
    EXPECT_GT(crossing.high, at);
    EXPECT_LE(lengths_of(found), 9u) << at;
  }
}

TEST(Search, ExactAmountsThatJumpAreEnclosedToo) {
  for (const double at : {270.5, 1010.5}) {
    const Searched found = search([&](double n) { return n < at ? 1.001 : 0.01; }, 0);
    ASSERT_EQ(found.state.crossings.size(), 1u);
    EXPECT_TRUE(found.state.crossings[0].is_narrow) << at;
    EXPECT_LE(lengths_of(found), 14u) << at;
  }
  const Searched equal = search([](double) { return 1.0; }, 0);
  EXPECT_TRUE(equal.state.crossings.empty());
  EXPECT_EQ(lengths_of(equal), first_lengths(64, 8192).size());
}

TEST(Search, AdjacentLengthsEndIt) {
  const Searched found = search([](double n) { return 7.5 / n; }, 0, {.low = 1, .high = 16});
  ASSERT_EQ(found.state.crossings.size(), 1u);
  EXPECT_EQ(found.state.crossings[0].low, 7);
  EXPECT_EQ(found.state.crossings[0].high, 8);
  const Searched timed = search([](double n) { return 7.5 / n; }, 0.01, {.low = 1, .high = 16});
  EXPECT_EQ(timed.state.crossings.size(), 1u);
}

TEST(Search, TheOrderOfThePointsDoesNotMatter) {
  Searched found = search([](double n) { return std::pow(640 / n, 0.8); }, 0.01);
  std::reverse(found.curve.points.begin(), found.curve.points.end());
  const SearchState again = search_step(found.curve);
  EXPECT_TRUE(again.next.empty());
  EXPECT_DOUBLE_EQ(again.crossings.at(0).at, found.state.crossings.at(0).at);
}

TEST(LineCrossing, NeedsThreeLengthsAndASlope) {
  const Ratio ratio = [](double n) { return 100 / n; };
  EXPECT_FALSE(line_crossing({point_of(ratio, 90, 0.01), point_of(ratio, 110, 0.01)}));
  const Ratio flat = [](double) { return 1.1; };
  EXPECT_FALSE(line_crossing(
      {point_of(flat, 90, 0.01), point_of(flat, 90, 0.01), point_of(flat, 90, 0.01)}));
  const auto line = line_crossing(
      {point_of(ratio, 90, 0.01), point_of(ratio, 100, 0.01), point_of(ratio, 110, 0.01)});
  ASSERT_TRUE(line && line->is_bounded);
  EXPECT_NEAR(line->at, 100, 1e-6);
}

TEST(LineCrossing, ScatterBetweenLengthsWidensIt) {
  const auto width = [](double tile) {
    std::vector<RatioPoint> points;
    for (const int64_t length : {85, 92, 100, 108, 117}) {
      points.push_back(point_of([](double n) { return 100 / n; }, length, 0.001));
      points.back().ratio.value += length % 4 == 0 ? tile : -tile;
    }
    const auto line = line_crossing(points);
    return line->high - line->low;
  };
  EXPECT_GT(width(0.03), 5 * width(0));
}

}  // namespace
}  // namespace attn::search_test
