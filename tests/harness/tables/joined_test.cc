// One record: what is joined to a score by its shape, and what is not.
#include "harness/tables/joined.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::joined_test {
namespace {

constexpr int64_t kLength = 64, kHeads = 2, kHeadDim = 32;

Row row_at(Measure measure, const std::string& name, int64_t length = kLength) {
  Row row;
  row.run = "r";
  row.cell = fmt::format("{}{}{}", name_of(measure), name, length);
  row.key.measure = measure;
  row.key.variant = {.name = name, .params = Params(name, find_variant(name).params)};
  row.key.axes.length = length;
  row.key.axes.causal = true;
  return row;
}

Row scored(const std::string& name, double test, int64_t seed = 0,
           const char* ended_by = "target") {
  Row row = row_at(Measure::accuracy, name);
  row.cell += fmt::format("{}{}", seed, test);
  row.key.task = Plugin{.name = "mqar", .params = Params::unchecked({{"pairs", int64_t{8}}})};
  row.key.axes.seed = seed;
  row.key.training = Params::unchecked({{"heads", kHeads},
                                        {"kv_heads", int64_t{0}},
                                        {"layers", int64_t{2}},
                                        {"width", kHeads * kHeadDim},
                                        {"steps", int64_t{100}}});
  AccuracyMetrics metrics{.metric = "accuracy", .test = test, .lift = test, .steps = 100};
  metrics.ended_by = ended_by;
  metrics.state_bytes = 4096;
  row.result.metrics = metrics;
  return row;
}

Row shaped(Measure measure, const std::string& name, Mode mode = Mode::forward) {
  Row row = row_at(measure, name);
  row.cell += name_of(mode);
  row.key.axes.heads = kHeads;
  row.key.axes.head_dim = kHeadDim;
  row.key.axes.batch = 1;
  row.key.axes.threads = 1;
  row.key.axes.mode = mode;
  row.key.axes.scope = ScopeKind::attention;
  row.result.verified = Verified{.by = VerifiedBy::reference};
  return row;
}

Row timed(const std::string& name, double seconds, Mode mode = Mode::forward) {
  Row row = shaped(Measure::speed, name, mode);
  row.result.metrics = SpeedMetrics{.time = {.median = seconds}};
  return row;
}

Row weighed(const std::string& name, int64_t bytes) {
  Row row = shaped(Measure::memory, name);
  row.result.metrics = MemoryMetrics{.peak_bytes = bytes};
  return row;
}

std::vector<std::string> line_of(const Table& table, const std::string& variant) {
  for (const auto& line : table.rows)
    if (line[0] == variant) return line;
  return {};
}

TEST(Joined, ALineHoldsWhatWasMeasuredAtTheShapeOfItsScores) {
  Row off = row_at(Measure::fidelity, "linear");
  off.key.axes.heads = kHeads;
  off.key.axes.head_dim = kHeadDim;
  off.result.metrics = FidelityMetrics{.relative_error = 0.5};
  const std::vector<Row> rows = {scored("full", 1.0),
                                 scored("linear", 0.8),
                                 scored("linear", 0.9, 1),
                                 timed("full", 2e-3),
                                 timed("linear", 1e-3),
                                 timed("linear", 3e-3, Mode::train),
                                 timed("linear", 5e-6, Mode::decode),
                                 weighed("linear", 2048),
                                 off};
  const std::vector<JoinedRecord> records = joined_records(rows);
  ASSERT_EQ(records.size(), 1u);
  const Table table = joined_tables(records).at(0);
  EXPECT_EQ(table.title, "one record: length 64, causal, 2 layers, 2 heads of 32, scope attention");
  const std::vector<std::string> columns = {"variant",        "forward",      "train",
                                            "decode a token", "peak memory",  "state of the model",
                                            "error",          "mqar[pairs=8]"};
  EXPECT_EQ(table.columns, columns);
  const std::vector<std::string> linear = {"linear",   "1 ms",     "3 ms", "5 us",
                                           "2.00 KiB", "4.00 KiB", "0.5",  "0.850 ±0.635"};
  EXPECT_EQ(line_of(table, "linear"), linear);
  EXPECT_EQ(line_of(table, "full").at(1), "2 ms");
  EXPECT_EQ(line_of(table, "full").at(2), "") << "not measured";
  const std::vector<Json> lines = joined_lines(records);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["train_s"], 3e-3);
  EXPECT_EQ(lines[1]["scores"]["mqar[pairs=8]"]["seeds"], 2);
  EXPECT_TRUE(lines[0]["train_s"].is_null());
}

// Each of these times is of another shape than the score.
TEST(Joined, WhatIsOfAnotherShapeIsNotJoined) {
  const auto changed = [](auto change) {
    Row row = timed("linear", 1e-3);
    change(row.key.axes);
    return row;
  };
  const std::vector<Row> others = {changed([](Axes& axes) { axes.length = 128; }),
                                   changed([](Axes& axes) { axes.causal = false; }),
                                   changed([](Axes& axes) { axes.heads = 4; }),
                                   changed([](Axes& axes) { axes.kv_heads = 1; }),
                                   changed([](Axes& axes) { axes.head_dim = 64; }),
                                   changed([](Axes& axes) { axes.dtype = Dtype::bfloat16; })};
  for (const Row& other : others) {
    const std::vector<Row> rows = {scored("full", 1.0), scored("linear", 0.9), other};
    const Table table = joined_tables(joined_records(rows)).at(0);
    EXPECT_EQ(table.columns.at(1), "state of the model");
    EXPECT_TRUE(says(table.notes.at(0), "nothing was timed at this shape"));
  }
}

TEST(Joined, OfSeveralBatchesAndThreadsTheLeastStands) {
  Row batched = timed("linear", 9e-3), threaded = timed("linear", 8e-3);
  batched.key.axes.batch = 8;
  threaded.key.axes.threads = 2;
  const std::vector<Row> rows = {scored("full", 1.0), scored("linear", 0.9), batched, threaded,
                                 timed("linear", 1e-3)};
  EXPECT_EQ(line_of(joined_tables(joined_records(rows)).at(0), "linear").at(1), "1 ms");
}

TEST(Joined, EachScopeIsARecordOfItsOwn) {
  Row layer = timed("linear", 4e-3);
  layer.key.axes.scope = ScopeKind::layer;
  const std::vector<Row> rows = {scored("full", 1.0), scored("linear", 0.9), timed("linear", 1e-3),
                                 layer};
  const std::vector<JoinedRecord> records = joined_records(rows);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(line_of(joined_tables(records).at(0), "linear").at(1), "1 ms");
  EXPECT_EQ(line_of(joined_tables(records).at(1), "linear").at(1), "4 ms");
}

TEST(Joined, AModelOfOtherLayersIsNotJoined) {
  Row model = timed("linear", 4e-3);
  model.key.axes.scope = ScopeKind::model;
  const auto found = [&] {
    return joined_records({scored("full", 1.0), scored("linear", 0.9), model})
        .at(0)
        .lines.at(1)
        .forward;
  };
  EXPECT_TRUE(found()) << "a model has two layers, where nothing else is said";
  model.key.axes.layers = 12;
  EXPECT_FALSE(found());
}

TEST(Joined, ErrorsAreOfOneKindOfInput) {
  const auto off = [](double scale, double error) {
    Row row = row_at(Measure::fidelity, "linear");
    row.key.axes.heads = kHeads;
    row.key.axes.head_dim = kHeadDim;
    row.key.axes.input_scale = scale;
    row.result.metrics = FidelityMetrics{.relative_error = error};
    return row;
  };
  const std::vector<Row> rows = {scored("full", 1.0), scored("linear", 0.9), off(2, 0.75),
                                 off(1, 0.5)};
  const Table table = joined_tables(joined_records(rows)).at(0);
  EXPECT_EQ(line_of(table, "linear").at(2), "0.75");
  EXPECT_TRUE(says(table.notes.at(1), "inputs random x2")) << table.notes.at(1);
}

TEST(Joined, MarksGoWithTheirNumbers) {
  Row noisy = timed("linear", 1e-3);
  noisy.result.noisy = {Noise::steal};
  Row unknown = timed("full", 1e-3);
  unknown.result.verified = Verified{.by = VerifiedBy::identities};
  const std::vector<Row> rows = {scored("full", 1.0), scored("linear", 0.9, 0, "steps"), noisy,
                                 unknown};
  const Table table = joined_tables(joined_records(rows)).at(0);
  EXPECT_EQ(line_of(table, "linear").at(1), "1 ms*");
  EXPECT_EQ(line_of(table, "full").at(1), "1 ms?");
  EXPECT_TRUE(says(line_of(table, "linear").back(), "0.900†"));
  std::string notes;
  for (const std::string& note : table.notes) notes += note + "\n";
  for (const char* sign : {"†:", "*:", "? full:"}) EXPECT_TRUE(says(notes, sign)) << notes;
}

TEST(Joined, ASettingThatItsControlHasNotLearnedIsNoColumn) {
  const std::vector<Row> rows = {scored("full", 0.1), scored("linear", 0.9), timed("linear", 1e-3)};
  const Table table = joined_tables(joined_records(rows)).at(0);
  EXPECT_EQ(table.columns, std::vector<std::string>({"variant", "forward"}));
  EXPECT_TRUE(says(table.notes.back(), "left out: mqar[pairs=8]: full scores 0.100"));
  EXPECT_TRUE(joined_records({timed("linear", 1e-3)}).empty()) << "no score";
}

}  // namespace
}  // namespace attn::joined_test
