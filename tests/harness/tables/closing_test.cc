// The closing table: which rows its figures are made of, and what its sentences say.
#include "harness/tables/closing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "harness/tables/table.h"
#include "tests/harness/store/sample_rows.h"

namespace attn::closing_test {
namespace {

Json variant(const std::string& name, int64_t features = 0) {
  Json params = Json::object();
  if (features) params["features"] = features;
  return {{"name", name}, {"params", params}};
}

Json speed_row(const Json& of, int64_t length, double seconds) {
  Json row = sample_cell("speed");
  row["variant"] = of;
  row["axes"]["length"] = length;
  row["metrics"]["time_s"]["median"] = seconds;
  row["metrics"]["time_s"]["ci_low"] = 0.9 * seconds;
  row["metrics"]["time_s"]["ci_high"] = 1.1 * seconds;
  return row;
}

Json scored_row(const Json& of, double test, int64_t seed = 0, int64_t steps = 100) {
  Json row = sample_cell("accuracy");
  row["variant"] = of;
  row["axes"]["seed"] = seed;
  row["training"] = {{"steps", steps}};
  row["metrics"]["test"] = test;
  row["metrics"]["lift"] = test - 0.02;
  row["metrics"]["by_length"] = nullptr;
  return row;
}

std::vector<Json> timed() {
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

TEST(Closing, AScoreIsTheMeanOverSeeds) {
  std::vector<Json> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.8, 0));
  rows.push_back(scored_row(variant("full"), 1.0, 1));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "full").back(), "0.900 (+0.880)");
  EXPECT_FALSE(has_note(*table, "the first are shown"));
}

TEST(Closing, OtherParametersAndSettingsAreNoSeeds) {
  std::vector<Json> rows = timed();
  rows.push_back(scored_row(variant("full"), 1.0));
  rows.push_back(scored_row(variant("performer", 32), 0.4));
  rows.push_back(scored_row(variant("performer", 64), 0.8));          // another parameter
  rows.push_back(scored_row(variant("performer", 32), 0.9, 0, 500));  // another setting
  Json wide = scored_row(variant("performer", 32), 0.7);
  wide["axes"]["heads"] = 16;  // another axis
  rows.push_back(wide);
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(line_of(*table, "performer").back().starts_with("0.400 (+0.380)"));
  EXPECT_TRUE(has_note(*table, "the first are shown"));
}

TEST(Closing, AFailedSeedIsLeftOut) {
  std::vector<Json> rows = timed();
  Json failed = scored_row(variant("full"), 0.8, 0);
  failed["status"] = "failed";
  failed["reason"] = "because";
  failed["metrics"] = nullptr;
  rows.push_back(failed);
  rows.push_back(scored_row(variant("full"), 0.8, 1));
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_EQ(line_of(*table, "full").back(), "0.800 (+0.780)");
}

TEST(Closing, TheLongestTestIsThatOfAllSeeds) {
  std::vector<Json> rows = timed();
  for (const int64_t seed : {0, 1}) {
    Json row = scored_row(variant("full"), 1.0, seed);
    row["metrics"]["by_length"] =
        Json::parse(R"([{"length": 64, "test": 0.9}, {"length": 128, "test": 0.5},
        {"length": 256, "test": null}])");
    if (seed == 1) row["metrics"]["by_length"][1]["test"] = 0.3;
    if (seed == 1) row["metrics"]["by_length"][2]["test"] = 0.1;
    rows.push_back(row);
  }
  const auto table = closing_table(rows);
  ASSERT_TRUE(table);
  EXPECT_TRUE(has_note(*table, "full 0.400 at 128"));
}

TEST(Closing, TheFastestIsOfThoseThatKeepTheScore) {
  std::vector<Json> rows = timed();
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

TEST(Closing, DecodingStandsInSentencesOfItsOwn) {
  std::vector<Json> rows = timed();
  rows.push_back(scored_row(variant("full"), 0.95));
  for (const auto& [name, seconds, state] :
       {std::tuple{"full", 0.002, 8192}, std::tuple{"linear", 0.0005, 2048}}) {
    Json row = speed_row(variant(name), 1024, seconds);
    row["axes"]["mode"] = "decode";
    row["axes"]["causal"] = true;
    row["metrics"]["state_bytes"] = state;
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
