// From rows to laws: which rows make a series, what is held back, and what has no law.
#include "harness/growth/growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/growth/report.h"
#include "variants/catalog.h"

namespace attn::growth_test {
namespace {

Row row_of(Measure measure, const std::string& variant, int64_t length) {
  Row row;
  row.key.measure = measure;
  row.key.variant = {variant, Params(variant, find_variant(variant).params)};
  row.key.axes.length = length;
  row.key.axes.causal = false;
  return row;
}

Row timed(const std::string& variant, int64_t length, double exponent, double factor = 1) {
  Row row = row_of(Measure::speed, variant, length);
  const double time = factor * 1e-9 * std::pow(static_cast<double>(length), exponent);
  row.result.times = {time, time * 1.02, time * 0.98};
  row.result.visits = {1, 1, 1};
  SpeedMetrics metrics;
  metrics.flops = 8.0 * static_cast<double>(length * length);
  row.result.metrics = metrics;
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
  EXPECT_TRUE(has("curved:"));
  EXPECT_TRUE(has("extrapolated: not measured"));
  const std::vector<Json> lines = growth_lines(growths, 65536);
  EXPECT_EQ(lines[0]["is_curved"], true);
  EXPECT_EQ(lines[1]["extrapolated"]["length"], 65536);
}

}  // namespace
}  // namespace attn::growth_test
