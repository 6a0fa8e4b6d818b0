// Runs joined to one row: the padded pass beside packed sequences follows their times.
#include "harness/compare/pooled.h"

#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/cell/packed_figures.h"
#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::pooled_test {
namespace {

using namespace rows_of_sweep;

// A run of one visit: 10 and 20 positions, padded to 20.
Row packed_row(const std::vector<double>& times, const std::vector<double>& padded) {
  Row packed = row(Measure::speed, "full", 20);
  packed.key.axes.batch = 2;
  packed.key.axes.packed = "q10_q20";
  packed.result.times = times;
  packed.result.padded_times = padded;
  packed.result.visits = {std::ssize(times)};
  const Summary time = summarize(times);
  SpeedMetrics metrics{.time = time, .tokens_per_s = 30 / time.median};
  metrics.packed = packed_figures(packed.key.axes, time, times, padded, packed.result.visits, 0);
  packed.result.metrics = metrics;
  return packed;
}

Row pooled_of(const std::vector<Row>& runs) {
  std::vector<RowsFile> files;
  for (const Row& run : runs) files.push_back(file({run}));
  const PooledRows whole = pooled(files);
  EXPECT_EQ(whole.cells, 1u);
  return row_of(whole.lines.at(1));
}

// Medians of the padded pass 2, 4 and 8, of the packed one 1 each: ratios whose logarithms are 1, 2
// and 3 times that of 2.
TEST(Pooled, ThePaddedPassFollows) {
  const Row whole = pooled_of({packed_row({1, 1, 1}, {2, 2, 2}), packed_row({1, 1, 1}, {4, 4, 4}),
                               packed_row({1, 1, 1}, {8, 8, 8})});
  EXPECT_EQ(whole.result.times.size(), 9u);
  EXPECT_EQ(whole.result.padded_times, std::vector<double>({2, 2, 2, 4, 4, 4, 8, 8, 8}));
  EXPECT_EQ(whole.result.visits, std::vector<int64_t>({3, 3, 3}));
  const PackedFigures& packed = whole.speed().packed.value();
  EXPECT_EQ(packed.tokens, 30);
  EXPECT_EQ(packed.padded_time->n, 9);
  EXPECT_EQ(packed.padded_time->median, 4);
  EXPECT_EQ(packed.padded_tokens_per_s, 7.5);
  EXPECT_EQ(packed.speedup, 4);
  const double log_two = std::log(2);
  const double reach = 4.302652729696142 * log_two / std::sqrt(3);  // 97.5 %, 2 degrees
  EXPECT_NEAR(packed.speedup_ci_low.value(), std::exp(2 * log_two - reach), 1e-9);
  EXPECT_NEAR(packed.speedup_ci_high.value(), std::exp(2 * log_two + reach), 1e-9);
}

// The ratio is to the median of all packed samples, not to that of the first run.
TEST(Pooled, TheRatioIsOfAllSamples) {
  const Row whole = pooled_of({packed_row({1, 1, 1}, {6, 6, 6}), packed_row({2, 2, 2}, {6, 6, 6}),
                               packed_row({3, 3, 3}, {6, 6, 6})});
  EXPECT_EQ(whole.speed().time.median, 2);
  EXPECT_EQ(whole.speed().packed->speedup, 3);
}

// As of an earlier version: its time of the padded pass has no samples.
TEST(Pooled, WithoutPaddedSamplesOfOneRunNothingIsSaidOfThem) {
  const Row with = packed_row({1, 1, 1}, {2, 2, 2});
  Row without = with;
  without.result.padded_times.clear();
  for (const std::vector<Row>& runs : {std::vector<Row>{with, without}, {without, with}}) {
    const Row whole = pooled_of(runs);
    EXPECT_EQ(whole.result.times.size(), 6u);
    EXPECT_TRUE(whole.result.padded_times.empty());
    const PackedFigures& packed = whole.speed().packed.value();
    EXPECT_EQ(packed.tokens, 30);
    EXPECT_FALSE(packed.padded_time);
    EXPECT_FALSE(packed.padded_tokens_per_s);
    EXPECT_FALSE(packed.speedup);
    EXPECT_FALSE(packed.speedup_ci_low);
    EXPECT_FALSE(packed.speedup_ci_high);
  }
}

}  // namespace
}  // namespace attn::pooled_test
