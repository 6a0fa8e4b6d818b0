// Times of the kinds of layers of a model, added.
#include "harness/tables/shape_totals.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::shape_totals_test {
namespace {

Plugin plugin(const std::string& name, int64_t window = 0) {
  const std::map<std::string, ParamValue> given =
      window > 0 ? std::map<std::string, ParamValue>{{"window", window}}
                 : std::map<std::string, ParamValue>{};
  return {.name = name, .params = Params(name, find_variant(name).params, given)};
}

Row timed_layer(const Plugin& variant, int64_t length, double seconds, int64_t heads = 4) {
  Row row;
  row.key.measure = Measure::speed;
  row.key.variant = variant;
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

const Plugin kNear = plugin("truncated", 4), kFar = plugin("truncated", 16), kFull = plugin("full");

ShapeLayer layer(int64_t count, const Plugin& variant) {
  return {
      .count = count, .variant = "", .plugin = variant, .heads = 4, .kv_heads = 2, .head_dim = 8};
}

ModelShape model() {
  return {.name = "own", .source = "", .note = "", .layers = {layer(3, kNear), layer(2, kFull)}};
}

TEST(ShapeTotals, AddTimesAndStatesOfAllLayers) {
  std::vector<Row> rows = {timed_layer(kNear, 64, 2e-3), timed_layer(kFull, 64, 5e-3)};
  const std::string text = shape_totals({model()}, rows);
  EXPECT_TRUE(says(text, "own at length 64, decode: 3 x 2 ms + 2 x 5 ms = 16 ms, state 5.00 MiB"))
      << text;
  rows[1].result.noisy = {Noise::witness};
  EXPECT_TRUE(says(shape_totals({model()}, rows), "2 x 5 ms* = ")) << "a disturbed time is marked";
  auto metrics = rows[0].speed();
  metrics.state_bytes.reset();
  rows[0].result.metrics = metrics;
  EXPECT_FALSE(says(shape_totals({model()}, rows), "state")) << "of one kind it is not known";
}

// Two windows are two kinds of layers.
TEST(ShapeTotals, ParametersTellLayersApart) {
  ModelShape windows = model();
  windows.layers[1] = layer(2, kFar);
  const std::string text =
      shape_totals({windows}, {timed_layer(kNear, 64, 2e-3), timed_layer(kFar, 64, 3e-3)});
  EXPECT_TRUE(says(text, "3 x 2 ms + 2 x 3 ms = 12 ms")) << text;
}

TEST(ShapeTotals, TypesOfCachesAreNotMixed) {
  std::vector<Row> rows = {timed_layer(kNear, 64, 2e-3), timed_layer(kFull, 64, 5e-3),
                           timed_layer(kNear, 64, 1e-3), timed_layer(kFull, 64, 4e-3)};
  rows[2].key.axes.kv_dtype = rows[3].key.axes.kv_dtype = CacheType::int8;
  const std::string text = shape_totals({model()}, rows);
  EXPECT_TRUE(says(text, "decode: 3 x 2 ms + 2 x 5 ms = 16 ms")) << text;
  EXPECT_TRUE(says(text, "decode, kv_dtype int8: 3 x 1 ms + 2 x 4 ms = 11 ms")) << text;
  rows.pop_back();
  EXPECT_FALSE(says(shape_totals({model()}, rows), "kv_dtype int8:")) << "one kind lacks its time";
}

TEST(ShapeTotals, ALackingLayerLeavesNoTotal) {
  EXPECT_EQ(shape_totals({model()}, {timed_layer(kFull, 64, 5e-3)}), "");
  EXPECT_EQ(shape_totals({model()}, {timed_layer(kNear, 32, 2e-3), timed_layer(kFull, 64, 5e-3)}),
            "")
      << "of other lengths";
  EXPECT_EQ(
      shape_totals({model()}, {timed_layer(kNear, 64, 2e-3, 8), timed_layer(kFull, 64, 5e-3)}), "")
      << "of other heads";
  EXPECT_EQ(shape_totals({model()}, {timed_layer(kNear, 64, 2e-3), timed_layer(kNear, 64, 2e-3),
                                     timed_layer(kFull, 64, 5e-3)}),
            "")
      << "two times of one kind";
}

}  // namespace
}  // namespace attn::shape_totals_test
