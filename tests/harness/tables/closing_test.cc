// The closing table: which rows its figures are made of, and what its sentences say.
#include "harness/tables/closing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <variant>

#include "harness/tables/table.h"
#include "tests/harness/store/sample_rows.h"

namespace attn::closing_test {
namespace {

Plugin variant(const std::string& name, int64_t features = 0) {
  Plugin plugin{.name = name, .params = {}};
  if (features) plugin.params = Params::unchecked({{"features", features}});
  return plugin;
}

Row speed_row(const Plugin& of, int64_t length, double seconds) {
  return speed_row_of(
      of, length, {.time = {.median = seconds, .ci_low = 0.9 * seconds, .ci_high = 1.1 * seconds}});
}

Row scored_row(const Plugin& of, double test, int64_t seed = 0, int64_t steps = 100) {
  Row row;
  row.key.measure = Measure::accuracy;
  row.key.variant = of;
  row.key.task = Plugin{.name = "mqar", .params = Params::unchecked({{"pairs", int64_t{8}}})};
  row.key.axes.seed = seed;
  row.key.training = Params::unchecked({{"steps", steps}});
  row.result.metrics =
      AccuracyMetrics{.metric = "accuracy", .test = test, .lift = test - 0.02, .steps = steps};
  return row;
}

std::vector<Row> timed() {
  return {speed_row(variant("full"), 512, 0.1), speed_row(variant("full"), 1024, 0.4),
          speed_row(variant("performer"), 512, 0.2), speed_row(variant("performer"), 1024, 0.2)};
}

// The line of a variant, by the start of its label.
std::vector<std::string> line_of(const Table& table, const std::string& label) {
  for (const auto& line : table.rows)
    if (line[0].starts_with(label)) return line;
  return {};
}

bool has_note(const Table& table, const std::string& part) {
  return std::any_of(table.notes.begin(), table.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

// As of a shard: no length is in both rows.
TEST(Closing, AVariantMayLackTheFirstLength) {
  const std::vector<Row> rows = {
      speed_row(variant("full"), 512, 0.1), speed_row(variant("performer", 8), 1024, 0.2),
      scored_row(variant("full"), 0.9), scored_row(variant("performer", 8), 0.5)};
  const std::optional<Table> table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.at(1).at(0), "performer[features=8]");
}

// As where a sweep measures further parameters at one length.
TEST(Closing, AVariantHasTheParametersOfMostLengths) {
  std::vector<Row> rows = {
      speed_row(variant("performer", 32), 512, 0.3), speed_row(variant("full"), 512, 0.1),
      speed_row(variant("full"), 1024, 0.4),         speed_row(variant("performer", 8), 512, 0.2),
      speed_row(variant("performer", 8), 1024, 0.2), scored_row(variant("full"), 0.9),
      scored_row(variant("performer", 8), 0.5)};
  const std::optional<Table> table = closing_table(rows);
  ASSERT_TRUE(table);
  const auto line = line_of(*table, "performer");
  EXPECT_EQ(line.at(0), "performer[features=8]");
  EXPECT_EQ(line.at(1), "1024") << "faster from";
  EXPECT_EQ(line.at(2), "0.5");
}

TEST(Closing, AScoreIsTheMeanOverSeeds) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.8, 0));
  rows.push_back(scored_row(variant("full"), 1.0, 1));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "full").back(), "0.900 (+0.880)");
  EXPECT_FALSE(has_note(*table, "the first are shown"));
}

TEST(Closing, OtherParametersAndSettingsAreNoSeeds) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 1.0));
  rows.push_back(scored_row(variant("performer", 32), 0.4));
  rows.push_back(scored_row(variant("performer", 64), 0.8));          // another parameter
  rows.push_back(scored_row(variant("performer", 32), 0.9, 0, 500));  // another setting
  Row wide = scored_row(variant("performer", 32), 0.7);
  wide.key.axes.threads = 2;  // another axis
  rows.push_back(wide);
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(line_of(*table, "performer").back().starts_with("0.400 (+0.380)"));
  EXPECT_TRUE(has_note(*table, "the first are shown"));
}

TEST(Closing, AFailedSeedIsLeftOut) {
  std::vector<Row> rows = timed();
  Row failed = scored_row(variant("full"), 0.8, 0);
  failed.result = {.status = Status::failed, .reason = "because"};
  rows.push_back(failed);
  rows.push_back(scored_row(variant("full"), 0.8, 1));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "full").back(), "0.800 (+0.780)");
}

TEST(Closing, TheLongestTestIsThatOfAllSeeds) {
  std::vector<Row> rows = timed();
  for (const int64_t seed : {0, 1}) {
    Row row = scored_row(variant("full"), 1.0, seed);
    std::get<AccuracyMetrics>(row.result.metrics).by_length = {
        {.length = 64, .test = 0.9},
        {.length = 128, .test = seed == 1 ? 0.3 : 0.5},
        {.length = 256, .test = seed == 1 ? std::optional(0.1) : std::nullopt}};
    rows.push_back(row);
  }
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(has_note(*table, "full 0.400 at 128"));
}

TEST(Closing, TheFastestIsOfThoseThatKeepTheScore) {
  std::vector<Row> rows = timed();
  rows.push_back(speed_row(variant("linear"), 512, 0.01));
  rows.push_back(speed_row(variant("linear"), 1024, 0.02));
  rows.push_back(scored_row(variant("full"), 0.95));
  rows.push_back(scored_row(variant("performer"), 0.92));
  rows.push_back(scored_row(variant("linear"), 0.5));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(has_note(*table, "keep full's score on every task: performer (0.5 of its time)"));
  EXPECT_EQ(line_of(*table, "performer")[1], "1024");
}

// As of a sweep that was stopped before full was trained: of nothing follows nothing.
TEST(Closing, NobodyKeepsAScoreThatFullDoesNotHave) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("performer"), 0.92));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_FALSE(has_note(*table, "score on"));
}

TEST(Closing, ATaskThatFullIsNotScoredOnIsNotCounted) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.95));
  rows.push_back(scored_row(variant("performer"), 0.92));
  rows.push_back(scored_row(variant("performer"), 0.1));
  rows.back().key.task->name = "copy";
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(has_note(*table, "on the tasks on which full is scored (mqar"));
  EXPECT_TRUE(has_note(*table, "performer (0.5 of its time)"));
}

TEST(Closing, DecodingStandsInSentencesOfItsOwn) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.95));
  for (const auto& [name, seconds, state] :
       {std::tuple{"full", 0.002, 8192}, std::tuple{"linear", 0.0005, 2048}}) {
    Row row = speed_row(variant(name), 1024, seconds);
    row.key.axes.mode = Mode::decode;
    row.key.axes.causal = true;
    std::get<SpeedMetrics>(row.result.metrics).state_bytes = state;
    rows.push_back(row);
  }
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(has_note(*table, "decoding, token 1024 takes full 2 ms; of that time: linear 0.25"));
  EXPECT_TRUE(has_note(*table, "its state takes full 8.00 KiB; of those bytes: linear 0.25"));
  EXPECT_EQ(line_of(*table, "performer")[2], "0.5") << "the forward pass";
}

TEST(Closing, NeedsTwoMeasuresAndExactAttention) {
  EXPECT_FALSE(closing_table(timed()));
  EXPECT_FALSE(
      closing_table({speed_row(variant("linear"), 512, 0.1), scored_row(variant("linear"), 0.5)}));
}

}  // namespace
}  // namespace attn::closing_test
