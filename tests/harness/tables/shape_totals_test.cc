// Times of the kinds of layers of a model, added.
#include "harness/tables/shape_totals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::shape_totals_test {
namespace {

Row timed_layer(const std::string& name, int64_t length, double seconds, int64_t heads = 4) {
  Row row;
  row.key.measure = Measure::speed;
  row.key.variant = {.name = name, .params = Params(name, find_variant(name).params)};
  row.key.axes = {.length = length,
                  .batch = 1,
                  .heads = heads,
                  .kv_heads = 2,
                  .head_dim = 8,
                  .mode = Mode::decode,
                  .scope = ScopeKind::attention,
                  .threads = 1};
  SpeedMetrics metrics;
  metrics.time.median = seconds;
  metrics.state_bytes = 1 << 20;
  row.result.metrics = metrics;
  row.result.verified = Verified{.by = VerifiedBy::reference};
  return row;
}

const ModelShape kModel{
    .name = "own",
    .layers = {
        {.count = 3, .variant = "truncated[window=4]", .heads = 4, .kv_heads = 2, .head_dim = 8},
        {.count = 2, .variant = "full", .heads = 4, .kv_heads = 2, .head_dim = 8}}};

TEST(ShapeTotals, AddTimesAndStatesOfAllLayers) {
  std::vector<Row> rows = {timed_layer("truncated", 64, 2e-3), timed_layer("full", 64, 5e-3)};
  const std::string text = shape_totals({kModel}, rows);
  EXPECT_TRUE(says(text, "own at length 64, decode: 3 x 2 ms + 2 x 5 ms = 16 ms, state 5.00 MiB"))
      << text;
  rows[1].result.noisy = {Noise::witness};
  EXPECT_TRUE(says(shape_totals({kModel}, rows), "2 x 5 ms* = ")) << "a disturbed time is marked";
}

TEST(ShapeTotals, ALackingLayerLeavesNoTotal) {
  EXPECT_EQ(shape_totals({kModel}, {timed_layer("full", 64, 5e-3)}), "");
  EXPECT_EQ(
      shape_totals({kModel}, {timed_layer("truncated", 32, 2e-3), timed_layer("full", 64, 5e-3)}),
      "")
      << "of other lengths";
  EXPECT_EQ(shape_totals({kModel},
                         {timed_layer("truncated", 64, 2e-3, 8), timed_layer("full", 64, 5e-3)}),
            "")
      << "of other heads";
}

}  // namespace
}  // namespace attn::shape_totals_test
