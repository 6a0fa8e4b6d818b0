// The table of packed sequences: what it says of the ratio, by rows with and without an interval.
#include <gtest/gtest.h>

#include "harness/store/rows.h"
#include "harness/tables/table.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/said.h"

namespace attn::packed_table_test {
namespace {

Row packed_row(const std::string& variant, double speedup, std::optional<double> low,
               std::optional<double> high) {
  const Summary time{
      .median = 0.01, .mean = 0.01, .min = 0.01, .ci_low = 0.0099, .ci_high = 0.0101, .n = 5};
  SpeedMetrics metrics{.time = time, .tokens_per_s = 1e4};
  Summary padded = time;
  padded.median *= speedup;
  metrics.packed = PackedFigures{.sequences = 4,
                                 .tokens = 100,
                                 .useful = 0.625,
                                 .padded_time = padded,
                                 .padded_tokens_per_s = 1e4 / speedup,
                                 .speedup = speedup,
                                 .speedup_ci_low = low,
                                 .speedup_ci_high = high};
  Row row = speed_row_of({.name = variant, .params = {}}, 40, metrics);
  row.key.axes.batch = 4;
  row.key.axes.packed = "uniform";
  return row;
}

std::vector<std::string> last_two(const Table& table, size_t line) {
  const std::vector<std::string>& row = table.rows.at(line);
  return {row.end() - 2, row.end()};
}

TEST(PackedTable, ARatioHasItsInterval) {
  const Table table =
      tables_of({packed_row("full", 1.24, 1.2, 1.281), packed_row("local", 1.5, {}, {})}).at(0);
  EXPECT_EQ(table.columns.back(), "interval");
  using Texts = std::vector<std::string>;
  EXPECT_EQ(last_two(table, 0), Texts({"1.24×", "1.20 to 1.28"}));
  EXPECT_EQ(last_two(table, 1), Texts({"1.50×", "-"})) << "of an earlier version";
  std::string notes;
  for (const std::string& note : table.notes) notes += note + "\n";
  EXPECT_TRUE(says(notes, "faster: the padded median over the packed one, and its 95 % interval"));
  EXPECT_FALSE(says(notes, "undecided"));
}

TEST(PackedTable, AnIntervalThatHoldsOneTellsNothingApart) {
  const Table table =
      tables_of({packed_row("full", 1.02, 0.971, 1.07), packed_row("local", 0.9, 0.8, 0.95)}).at(0);
  EXPECT_EQ(last_two(table, 0).at(1), "0.97 to 1.07, undecided");
  EXPECT_EQ(last_two(table, 1).at(1), "0.80 to 0.95");
  std::string notes;
  for (const std::string& note : table.notes) notes += note + "\n";
  EXPECT_TRUE(says(notes, "undecided: it holds 1"));
}

// A row of an earlier version has neither samples of the padded pass nor ends of the ratio.
TEST(PackedTable, RowsKeepBothSamplesAndTheInterval) {
  Row row = packed_row("full", 1.24, 1.2, 1.281);
  row.result.times = {0.01, 0.01};
  row.result.padded_times = {0.0124, 0.0125};
  const Json written = to_json(row);
  EXPECT_EQ(written["padded_samples"], Json({0.0124, 0.0125}));
  const Row again = row_of(written);
  EXPECT_EQ(again.result.padded_times, row.result.padded_times);
  EXPECT_EQ(again.speed().packed->speedup_ci_low, 1.2);
  EXPECT_EQ(again.speed().packed->speedup_ci_high, 1.281);
  Json old = written;
  old.erase("padded_samples");
  old["metrics"]["packed"].erase("speedup_ci_low");
  old["metrics"]["packed"].erase("speedup_ci_high");
  const Row of_before = row_of(old);
  EXPECT_TRUE(of_before.result.padded_times.empty());
  EXPECT_FALSE(of_before.speed().packed->speedup_ci_low);
  EXPECT_EQ(to_json(of_before), old);
}

}  // namespace
}  // namespace attn::packed_table_test
