// The table of a breakdown: its columns, that its lines add up, and which rows share one.
#include <gtest/gtest.h>

#include <string>

#include "harness/tables/table.h"
#include "tests/harness/tables/speed_row.h"

namespace attn::breakdown_table_test {
namespace {

Row row_of(const std::string& variant, int64_t length, Mode mode,
           std::vector<std::pair<std::string, double>> shares) {
  SpeedMetrics metrics{.time = {.median = 0.1}};
  if (!shares.empty())
    metrics.breakdown = Breakdown{.passes = 6,
                                  .pass_s = 0.0125,
                                  .marks = 100,
                                  .overhead = 0.004,
                                  .shares = std::move(shares)};
  return speed_row_of({.name = variant, .params = {}}, length, metrics, mode);
}

TEST(BreakdownTable, HasAColumnForEachPartThatMatters) {
  const std::vector<Table> tables = breakdown_tables(
      {row_of("full", 64, Mode::forward, {{"products", 0.75}, {"masks", 0.004}, {"other", 0.246}}),
       row_of("linear", 128, Mode::forward, {{"products", 0.5}, {"features", 0.5}})});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].columns,
            (std::vector<std::string>{"variant", "length", "pass in ms", "products", "features",
                                      "other", "parts below 1 %", "marks add"}));
  EXPECT_EQ(tables[0].rows.at(0),
            (std::vector<std::string>{"full", "64", "12.5", "75.0", "", "24.6", "0.4", "+0.4 %"}));
  EXPECT_EQ(tables[0].rows.at(1), (std::vector<std::string>{"linear", "128", "12.5", "50.0", "50.0",
                                                            "", "0.0", "+0.4 %"}));
}

TEST(BreakdownTable, NoColumnIsThereForPartsThatAreNot) {
  const std::vector<Table> tables =
      breakdown_tables({row_of("full", 64, Mode::forward, {{"products", 0.7}, {"other", 0.3}})});
  EXPECT_EQ(tables.at(0).columns, (std::vector<std::string>{"variant", "length", "pass in ms",
                                                            "products", "other", "marks add"}));
  EXPECT_EQ(tables[0].rows.at(0).size(), tables[0].columns.size());
}

TEST(BreakdownTable, ModesDoNotShareATable) {
  EXPECT_EQ(breakdown_tables({row_of("full", 64, Mode::forward, {{"other", 1}}),
                              row_of("full", 64, Mode::train, {{"other", 1}})})
                .size(),
            2u);
}

TEST(BreakdownTable, RowsWithoutOneAreLeftOut) {
  EXPECT_TRUE(breakdown_tables({row_of("full", 64, Mode::forward, {})}).empty());
  Row failed = row_of("full", 64, Mode::forward, {{"other", 1}});
  failed.result.status = Status::failed;
  Row memory;
  memory.key.measure = Measure::memory;
  memory.result.metrics = MemoryMetrics{};
  EXPECT_TRUE(breakdown_tables({failed, memory}).empty());
}

}  // namespace
}  // namespace attn::breakdown_table_test
