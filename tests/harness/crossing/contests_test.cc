// Contests from cells and rows, and what tables say of them.
#include "harness/crossing/contests.h"

#include <gtest/gtest.h>

#include "harness/crossing/report.h"
#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::contests_test {
namespace {

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

}  // namespace
}  // namespace attn::contests_test
