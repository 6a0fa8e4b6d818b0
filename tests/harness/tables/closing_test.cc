// The tables of a run: which rows their figures are made of, and what their sentences say.
#include "harness/tables/closing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <variant>

#include "harness/plan/labels.h"
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
  row.key.axes.length = 64;
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
  Row failed = scored_row(variant("performer"), 0.8, 0);
  failed.result = {.status = Status::failed, .reason = "because"};
  rows.push_back(failed);
  rows.push_back(scored_row(variant("performer"), 0.8, 1));
  rows.push_back(scored_row(variant("full"), 0.9, 1));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "performer").back(), "0.800 (+0.780)");
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
  EXPECT_TRUE(has_note(*table, "on the tasks that full learned (mqar"));
  EXPECT_TRUE(has_note(*table, "performer (0.5 of its time)"));
}

Row cut_row(const Plugin& of, double test) {
  Row row = scored_row(of, test);
  std::get<AccuracyMetrics>(row.result.metrics).ended_by = "steps";
  return row;
}

TEST(Closing, ATrainingThatWasCutOffIsMarkedAndNotJudged) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.95));
  rows.push_back(cut_row(variant("performer"), 0.95));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "performer").back(), "0.950† (+0.930)");
  EXPECT_TRUE(has_note(*table, "†: the training was cut off"));
  EXPECT_TRUE(has_note(*table,
                       "within 0.05 of it: none; not: none; cut off by its steps, not "
                       "judged: performer"));
  EXPECT_TRUE(has_note(*table, "no variant is faster than full at 1024 tokens and keeps"));
  EXPECT_EQ(tables_of(rows).at(1).rows.at(1).at(1), "0.950† (+0.930)");
  rows[4] = cut_row(variant("full"), 0.95);
  rows[5] = scored_row(variant("performer"), 0.95);
  const auto without = closing_table(rows);
  EXPECT_TRUE(has_note(*without, "the training of full was cut off by its steps: no yardstick"));
  EXPECT_FALSE(has_note(*without, "keep")) << "no task judges";
  auto& old = std::get<AccuracyMetrics>(rows[4].result.metrics);
  old.ended_by.clear();
  old.stopped_by = "steps";
  EXPECT_TRUE(has_note(*closing_table(rows), "within 0.05 of it: performer"))
      << "rows from before the rule";
}

TEST(Closing, ATaskThatFullHasNotLearnedIsNoColumn) {
  std::vector<Row> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.01));
  rows.push_back(scored_row(variant("performer"), 0.99));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table) << "times beside nothing: what is left out is said";
  EXPECT_EQ(table->columns.back().find("mqar"), std::string::npos);
  EXPECT_TRUE(has_note(*table, "left out: mqar"));
  EXPECT_TRUE(has_note(*table, "full scores 0.010, and reached the bar of 0.500 in 0 of 1 seed"));
  EXPECT_FALSE(has_note(*table, "0.99"));
  EXPECT_FALSE(has_note(*table, "keep full's score")) << "no task judges";
  EXPECT_FALSE(has_note(*table, "within"));
}

TEST(Speed, TypesAndSharedHeadsAreRowsOfOneTable) {
  std::vector<Row> rows;
  for (const std::optional<int64_t> shared : {std::optional<int64_t>(1), std::optional<int64_t>()})
    for (const char* name : {"full", "linear"}) {
      rows.push_back(speed_row(variant(name), 512, shared ? 0.1 : 0.2));
      rows.back().key.axes.kv_heads = shared;
    }
  std::vector<Table> tables = tables_of(rows);
  ASSERT_EQ(tables.size(), 1);
  std::vector<std::string> labels;
  for (const auto& line : tables[0].rows) labels.push_back(line[0]);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"full, kv_heads 1", "linear, kv_heads 1", "full", "linear"}));
  EXPECT_EQ(tables[0].rows[0].back(), "") << "compared with full of the same axes, itself";
  EXPECT_EQ(tables[0].rows[1].back(), "not up to 512") << "as fast as full, kv_heads 1";
  EXPECT_EQ(tables[0].title.find("kv_heads"), std::string::npos);
  EXPECT_TRUE(has_note(tables[0], "kv_heads: a pass copies keys and values"));

  rows.resize(2);  // one value: in the heading
  EXPECT_NE(tables_of(rows).at(0).title.find("kv_heads 1"), std::string::npos);
}

TEST(Speed, WhatVariesOfOneVariantIsRowsOfOneTable) {
  std::vector<Row> rows;
  for (const int64_t heads : {2, 4}) {
    rows.push_back(speed_row(variant("full"), 512, 0.1));
    rows.back().key.axes.heads = heads;
  }
  EXPECT_EQ(tables_of(rows).size(), 1);
  rows.push_back(speed_row(variant("linear"), 512, 0.1));
  rows.back().key.axes.heads = 4;
  EXPECT_EQ(tables_of(rows).size(), 2) << "variants are compared at one shape";
  rows.resize(2);
  rows[1].key.axes.mode = Mode::train;
  rows[1].key.axes.heads = 2;
  EXPECT_EQ(tables_of(rows).size(), 2) << "modes have other figures";
}

TEST(Fidelity, LengthsOfOneKindOfInputAreColumns) {
  std::vector<Row> rows;
  for (const int64_t length : {1024, 512}) {
    Row row = speed_row(variant("linear"), length, 0.1);
    row.key.measure = Measure::fidelity;
    row.key.axes.mode.reset();
    row.key.axes.input = InputKind::random;
    row.key.axes.input_scale = 1;
    row.result.metrics = FidelityMetrics{.relative_error = 0.5};
    rows.push_back(row);
  }
  ASSERT_EQ(tables_of(rows).size(), 1);
  EXPECT_EQ(tables_of(rows)[0].columns, (std::vector<std::string>{"variant", "512", "1024"}));
  rows.push_back(rows[0]);
  rows.back().key.axes.input_scale = 4;
  EXPECT_EQ(tables_of(rows).size(), 2) << "columns are inputs and scales";
}

TEST(Speed, ManyLengthsAreShownInPart) {
  std::vector<Row> rows;
  for (int64_t length = 16; length <= 16 * 40; length += 16)
    for (const char* name : {"full", "linear"})
      if (length % 48 == 0 || name[0] == 'f' || length == 16 || length == 640)
        rows.push_back(speed_row(variant(name), length, name[0] == 'f' ? 0.2 : 0.1));
  const Table table = tables_of(rows).at(0);
  EXPECT_EQ(table.columns.size(), 1 + 12 + 2);  // the label, lengths, the peak and the crossing
  EXPECT_EQ(table.columns[1], "16");
  EXPECT_EQ(table.columns[2], "48") << "where both were measured";
  EXPECT_EQ(table.columns[12], "640");
  EXPECT_TRUE(has_note(table, "12 of 40 lengths are shown"));
  EXPECT_EQ(line_of(table, "linear").back(), "624") << "of all lengths, one of which is not shown";
}

Row in_scope(const std::string& name, ScopeKind scope, double seconds) {
  Row row = speed_row(variant(name), 512, seconds);
  row.key.axes.scope = scope;
  row.key.axes.causal = true;
  return row;
}

TEST(Scope, ProjectionsOfGatesAreSaidToBeOutside) {
  std::vector<Row> rows = {in_scope("full", ScopeKind::attention, 0.2),
                           in_scope("gla", ScopeKind::attention, 0.1)};
  const Table alone = tables_of(rows).at(0);
  EXPECT_EQ(alone.rows.at(0).at(0), "full");
  EXPECT_EQ(alone.rows.at(1).at(0), "gla§");
  EXPECT_EQ(alone.rows.at(1).back(), "512") << "the crossing is still found";
  EXPECT_TRUE(has_note(alone, "§: reads gates, whose projections are outside scope attention"));
  EXPECT_FALSE(has_note(alone, "in a layer"));
  rows.push_back(in_scope("full", ScopeKind::layer, 0.5));
  rows.push_back(in_scope("gla", ScopeKind::layer, 0.6));
  const std::vector<Table> both = tables_of(rows);
  EXPECT_TRUE(has_note(both.at(0), "in a layer, with these projections, of full's time: gla 1.2"));
  EXPECT_EQ(both.at(1).rows.at(1).at(0), "gla") << "a layer pays for them";
  EXPECT_FALSE(has_note(both.at(1), "§"));
}

TEST(Scope, TheShareOfAttentionIsSaidWhereBothWereMeasured) {
  std::vector<Row> rows = {in_scope("full", ScopeKind::model, 0.5)};
  EXPECT_FALSE(has_note(tables_of(rows).at(0), "attention alone"));
  rows.push_back(in_scope("full", ScopeKind::attention, 0.1));
  const std::vector<Table> tables = tables_of(rows);
  ASSERT_EQ(tables.size(), 1) << "one variant: scopes are its rows";
  EXPECT_TRUE(has_note(tables[0], "of this time attention alone takes at 512: full, "));
  EXPECT_TRUE(has_note(tables[0], "scope model 40 %")) << "two layers";
  rows[1].key.axes.heads = 8;
  EXPECT_FALSE(has_note(tables_of(rows).at(0), "attention alone")) << "another shape";
}

Table accuracy_table(const std::vector<Row>& rows) { return tables_of(rows).at(0); }

TEST(Accuracy, TheHeadingSaysHowLongWasTrained) {
  const Row row = scored_row(variant("full"), 0.9);
  EXPECT_TRUE(accuracy_table({row}).title.ends_with("; steps 100"));
  Row other = scored_row(variant("full"), 0.9, 0, 500);
  EXPECT_TRUE(tables_of({row, other}).at(1).title.ends_with("; steps 500")) << "once";
  other.key.task->name = "copy";
  EXPECT_TRUE(accuracy_table({row, other}).title.ends_with("; steps 100 to 500"));
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

TEST(Closing, NeedsTwoMeasuresTwoVariantsAndExactAttention) {
  EXPECT_FALSE(closing_table(timed()));
  EXPECT_FALSE(
      closing_table({speed_row(variant("full"), 512, 0.1), scored_row(variant("full"), 0.5)}));
  EXPECT_FALSE(
      closing_table({speed_row(variant("linear"), 512, 0.1), scored_row(variant("linear"), 0.5)}));
}

}  // namespace
}  // namespace attn::closing_test
