// Tables of rows: floors, breakdowns, and from where a variant is faster.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "harness/store/rows.h"
#include "harness/tables/closing.h"
#include "harness/tables/faster_from.h"
#include "harness/tables/floors.h"
#include "harness/tables/table.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/places.h"
#include "tests/said.h"

namespace attn::floors_test {
namespace {

// Tables held to a noise floor: which floor counts at a length, what is then called faster, and
// what the note says.

FloorAt floor_at(int64_t length, double share, Mode mode = Mode::forward, int64_t threads = 1) {
  return {.mode = mode,
          .threads = threads,
          .length = length,
          .share = share,
          .cells = 5,
          .measured_at = "2026-01-31T12:00:00Z",
          .commit = ""};
}

NoiseFloor known() {
  return {floor_at(64, 0.03), floor_at(256, 0.01), floor_at(64, 0.5, Mode::train),
          floor_at(64, 0.7, Mode::forward, 2)};
}

double share_at(const NoiseFloor& floors, Mode mode, int64_t threads, int64_t length) {
  const FloorAt* const found = nearest_floor(floors, mode, threads, length);
  return found ? found->share : -1;
}

// As tests/python/plots/test_crossing.py.
TEST(Floors, TheNearestLengthOfTheSameModeAndThreadsCounts) {
  const NoiseFloor floors = known();
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 16), 0.03);
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 64), 0.03);
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 100), 0.03);
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 128), 0.03) << "as near to both: the higher one";
  EXPECT_EQ(share_at({floors[1], floors[0]}, Mode::forward, 1, 128), 0.03);
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 129), 0.01);
  EXPECT_EQ(share_at(floors, Mode::forward, 1, 9999), 0.01);
  EXPECT_EQ(share_at(floors, Mode::train, 1, 256), 0.5);
  EXPECT_EQ(share_at(floors, Mode::forward, 2, 256), 0.7);
  EXPECT_EQ(share_at(floors, Mode::decode, 1, 64), -1);
  EXPECT_EQ(share_at(floors, Mode::forward, 4, 64), -1);
  EXPECT_EQ(share_at({}, Mode::forward, 1, 64), -1);
}

TEST(Floors, TheNoteIsOneShortLine) {
  EXPECT_EQ(floor_note(known(), Mode::forward, 1),
            "noise floor of this machine: 3.0 % at length 64, 1.0 % at 256 (attnbench noise, "
            "2026-01-31)");
  EXPECT_EQ(floor_note(known(), Mode::decode, 4),
            "no noise floor of this machine is known for decode with 4 threads (attnbench noise)");
  NoiseFloor many;
  for (int64_t i = 1; i <= 20; i++)
    many.push_back(floor_at(64 * i, 0.001 * static_cast<double>(i)));
  EXPECT_EQ(floor_note(many, Mode::forward, 1),
            "noise floor of this machine: 0.1 % to 2.0 % at lengths 64 to 1280 (attnbench noise, "
            "2026-01-31)");
}

Row timed(const std::string& variant, int64_t length, double seconds) {
  Row row = speed_row_of(
      {.name = variant, .params = {}}, length,
      {.time = {.median = seconds, .ci_low = 0.999 * seconds, .ci_high = 1.001 * seconds}});
  row.result.visits = {1, 1, 1};
  return row;
}

// Linear takes 2 % less at 64 and half of the time at 128, performer 2 % less at both.
std::vector<Row> rows() {
  return {timed("full", 64, 1),    timed("full", 128, 2),        timed("linear", 64, 0.98),
          timed("linear", 128, 1), timed("performer", 64, 0.98), timed("performer", 128, 1.96)};
}

bool has_note(const Table& table, const std::string& start) {
  return std::any_of(table.notes.begin(), table.notes.end(),
                     [&](const std::string& note) { return note.starts_with(start); });
}

std::string faster_from_of(const Table& table, size_t line) { return table.rows.at(line).back(); }

TEST(Floors, NothingBelowThemIsCalledFaster) {
  const Table bare = tables_of(rows()).at(0);
  EXPECT_EQ(faster_from_of(bare, 1), "64");
  EXPECT_EQ(faster_from_of(bare, 2), "64");
  const Table held = tables_of(rows(), {floor_at(64, 0.05), floor_at(128, 0.03)}).at(0);
  EXPECT_EQ(faster_from_of(held, 1), "128");
  EXPECT_EQ(faster_from_of(held, 2), "not up to 128");
  ASSERT_EQ(held.notes.size(), bare.notes.size() + 1);
  EXPECT_TRUE(has_note(held, "noise floor of this machine: 5.0 % at length 64"));
}

TEST(Floors, OfAnotherModeLeaveATableButForItsNote) {
  const Table bare = tables_of(rows()).at(0);
  const Table held = tables_of(rows(), {floor_at(64, 9, Mode::train)}).at(0);
  EXPECT_EQ(held.rows, bare.rows);
  EXPECT_TRUE(has_note(held, "no noise floor"));
}

TEST(Floors, TheClosingTableIsHeldToThem) {
  std::vector<Row> all = rows();
  for (const char* name : {"full", "performer"}) {
    Row scored;
    scored.key.measure = Measure::accuracy;
    scored.key.variant = {.name = name, .params = {}};
    scored.key.task = Plugin{.name = "mqar", .params = Params::unchecked({{"pairs", int64_t{8}}})};
    scored.key.axes.seed = 0;
    scored.key.training = Params::unchecked({{"steps", int64_t{9}}});
    scored.result.metrics = AccuracyMetrics{.metric = "accuracy", .test = 0.9, .lift = 0.5};
    all.push_back(scored);
  }
  const Table bare = closing_table(all).value();
  EXPECT_EQ(bare.rows.at(2).at(1), "64");
  EXPECT_TRUE(says(bare.notes.back(), "performer (0.98 of its time)"));
  const Table held = closing_table(all, {floor_at(64, 0.05)}).value();
  EXPECT_EQ(held.rows.at(2).at(1), "not up to 128");
  EXPECT_TRUE(held.notes.back().starts_with("no variant is faster than full at 128 tokens"))
      << held.notes.back();
}

// The table of a breakdown: its columns, that its lines add up, and which rows share one.

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

// "Faster than full from": the cases that tables and pictures answer alike, in
// tests/data/faster_from.json.

TimesByLength times_of(const Json& by_length) {
  TimesByLength times;
  for (const auto& [length, ends] : by_length.items())
    times[length] = {ends.at(0).get<double>(), ends.at(1).get<double>(),
                     ends.size() > 2 ? ends.at(2).get<double>() : 0};
  return times;
}

TEST(FasterFrom, AnswersTheSharedCases) {
  std::ifstream file(source_folder() / "tests" / "data" / "faster_from.json");
  const Json cases = Json::parse(file).at("cases");
  ASSERT_GE(cases.size(), 15u);
  for (const Json& one : cases) {
    std::vector<std::string> lengths;
    for (const Json& length : one.at("lengths"))
      lengths.push_back(std::to_string(length.get<int64_t>()));
    const auto floors = one.value("floors", std::map<std::string, double>());
    EXPECT_EQ(faster_from(lengths, times_of(one.at("variant")), times_of(one.at("full")), floors),
              one.at("answer").get<std::string>())
        << one.at("name");
  }
}

}  // namespace
}  // namespace attn::floors_test
