// What tables hold of a setting that its control has not learned: a line that says so.
#include "harness/tables/learned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "harness/tables/table.h"

namespace attn::learned_test {
namespace {

struct Scored {
  std::string variant;
  double test = 0;
  int64_t seed = 0;
  std::string task = "mqar", kernel = {};
};

Row row_of(const Scored& of) {
  Row row;
  row.key.measure = Measure::accuracy;
  row.key.variant = {.name = of.variant, .params = {}};
  if (!of.kernel.empty()) row.key.variant.params = Params::unchecked({{"kernel", of.kernel}});
  row.key.task = Plugin{.name = of.task, .params = {}};
  row.key.axes.length = 64;
  row.key.axes.seed = of.seed;
  row.key.training = Params::unchecked({{"steps", int64_t{100}}});
  row.result.metrics = AccuracyMetrics{.metric = "accuracy",
                                       .test = of.test,
                                       .chance = 0.1,
                                       .shortcuts = {{"majority", 0.15}, {"window", 0.2}},
                                       .lift = of.test - 0.2,
                                       .steps = 100,
                                       .ended_by = "plateau"};
  return row;
}

AccuracyMetrics& metrics_of(Row& row) { return std::get<AccuracyMetrics>(row.result.metrics); }

std::vector<Row> rows_of(const std::vector<Scored>& all) {
  std::vector<Row> rows;
  for (const Scored& of : all) rows.push_back(row_of(of));
  return rows;
}

TaskSetting judged(const std::vector<Row>& rows) {
  Seeds seeds;
  for (const Row& row : rows) seeds.push_back(&row);
  return judged_setting(seeds);
}

Table first_table(const std::vector<Row>& rows) { return tables_of(rows).at(0); }

std::string notes_of(const Table& table) {
  std::string text;
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

bool holds(const Table& table, const std::string& part) {
  return notes_of(table).find(part) != std::string::npos;
}

TEST(Learned, TheBarIsHalfWayFromTheBestShortcutToAPerfectScore) {
  AccuracyMetrics metrics{.metric = "accuracy",
                          .chance = 0.1,
                          .shortcuts = {{"majority", 0.15}, {"window", 0.2}, {"bag", 0.12}}};
  EXPECT_DOUBLE_EQ(bar_of(metrics), 0.6);
  metrics.shortcuts.clear();
  EXPECT_DOUBLE_EQ(bar_of(metrics), 0.55) << "from chance";
  metrics = {.metric = "mean_squared_error", .chance = 0.2, .shortcuts = {{"mean", 0.16}}};
  EXPECT_DOUBLE_EQ(bar_of(metrics), 0.08) << "of an error, half of it";
  metrics = {.metric = "bits_per_token",
             .chance = 8,
             .shortcuts = {{"label frequencies", 4.5}, {"n-gram of 2", 2.5}, {"n-gram of 3", 3}}};
  EXPECT_DOUBLE_EQ(bar_of(metrics), 2.5) << "of bits the best shortcut";
}

TEST(Learned, EverySeedOfTheControlMustReachIt) {
  const TaskSetting one = judged(rows_of({{"full", 0.6, 0}, {"full", 0.59, 1}, {"linear", 0.9}}));
  EXPECT_EQ(one.learned, TaskSetting::Learned::no);
  EXPECT_EQ(one.control, "full");
  EXPECT_EQ(one.seeds, 2U);
  EXPECT_EQ(one.reached, 1U);
  EXPECT_EQ(judged(rows_of({{"full", 0.6, 0}, {"full", 0.61, 1}})).learned,
            TaskSetting::Learned::yes);
  EXPECT_EQ(judged(rows_of({{"linear", 0.9}})).learned, TaskSetting::Learned::unknown);
}

TEST(Learned, ATrainingOfTheControlThatFailedHasNotReachedIt) {
  std::vector<Row> rows = rows_of({{"full", 0.9, 0}, {"full", 0.9, 1}});
  rows[1].result = {.status = Status::timeout, .reason = "20 minutes"};
  EXPECT_EQ(judged(rows).learned, TaskSetting::Learned::no);
}

TEST(Learned, OneSetOfTheControlsParametersSuffices) {
  const TaskSetting found = judged(
      rows_of({{"full", 0.3, 0, "mqar", "materialized"}, {"full", 0.9, 0, "mqar", "tiled"}}));
  EXPECT_EQ(found.learned, TaskSetting::Learned::yes);
}

TEST(Learned, AnErrorMustFallBelowItsBar) {
  std::vector<Row> rows = rows_of({{"full", 0.09}, {"linear", 0.01}});
  for (Row& row : rows) {
    metrics_of(row).metric = "mean_squared_error";
    metrics_of(row).shortcuts = {{"mean", 0.16}};
  }
  EXPECT_EQ(judged(rows).learned, TaskSetting::Learned::no);
  metrics_of(rows[0]).test = 0.07;
  EXPECT_EQ(judged(rows).learned, TaskSetting::Learned::yes);
}

TEST(Learned, ATaskMayNameAnotherVariantThatMustLearnIt) {
  std::vector<Row> rows = rows_of({{"full", 0.2}, {"recurrent", 0.99}, {"linear", 0.4}});
  for (Row& row : rows) metrics_of(row).solver = "recurrent";
  const TaskSetting found = judged(rows);
  EXPECT_EQ(found.learned, TaskSetting::Learned::yes);
  EXPECT_EQ(found.control, "recurrent");
  metrics_of(rows[1]).test = 0.3;
  metrics_of(rows[0]).test = 0.99;
  EXPECT_EQ(judged(rows).learned, TaskSetting::Learned::no);
}

TEST(Learned, WhatAShortcutSolvesIsNotJudged) {
  std::vector<Row> rows = rows_of({{"full", 0.2}});
  metrics_of(rows[0]).control = "a bag of tokens";
  EXPECT_EQ(judged(rows).learned, TaskSetting::Learned::yes);
  EXPECT_EQ(first_table(rows).columns.size(), 2U);
}

TEST(Learned, ATableLeavesTheColumnOutAndSaysSo) {
  std::vector<Row> rows = rows_of(
      {{"full", 0.25}, {"linear", 0.99}, {"full", 0.9, 0, "copy"}, {"linear", 0.5, 0, "copy"}});
  Table table = first_table(rows);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"variant", "copy"}));
  EXPECT_EQ(table.rows.at(1).at(1).substr(0, 5), "0.500");
  EXPECT_EQ(table.rows.back().size(), 2U) << "the shortcuts too";
  EXPECT_TRUE(holds(
      table,
      "left out: mqar: full scores 0.250, and reached the bar of 0.600 in 0 of 1 seed; try --tune "
      "learning_rate --tune-by halving"));
  metrics_of(rows[0]).ended_by = "steps";
  EXPECT_TRUE(holds(first_table(rows),
                    "of 1 seed; try --train schedule=wsd, or steps=N, N "
                    "above 100"));
  metrics_of(rows[0]).test = 0.6;
  EXPECT_EQ(first_table(rows).columns.size(), 3U);
  EXPECT_FALSE(holds(first_table(rows), "left out"));
}

TEST(Learned, NoTableOfTheSameTrainingsHoldsThem) {
  std::vector<Row> rows = rows_of({{"full", 0.25}, {"linear", 0.99}});
  for (Row& row : rows)
    metrics_of(row).by_length = {{.factor = 1, .length = 64, .test = 0.98},
                                 {.factor = 2, .length = 128, .test = 0.97}};
  for (const Table& table : tables_of(rows))
    for (const auto& line : table.rows)
      for (const std::string& text : line) EXPECT_EQ(text.find("0.9"), std::string::npos) << text;
  metrics_of(rows[0]).test = 0.9;
  EXPECT_EQ(tables_of(rows).size(), 2U) << "and that of lengths";
}

TEST(Learned, WithoutItsControlATaskIsMarked) {
  const Table table = first_table(rows_of({{"linear", 0.99}}));
  EXPECT_EQ(table.columns.back(), "mqar ¶");
  EXPECT_TRUE(holds(table, "¶: full has no row here"));
  const Table both = first_table(rows_of({{"full", 0.9}, {"linear", 0.99}}));
  EXPECT_EQ(both.columns.back(), "mqar");
  EXPECT_FALSE(holds(both, "¶"));
}

}  // namespace
}  // namespace attn::learned_test
