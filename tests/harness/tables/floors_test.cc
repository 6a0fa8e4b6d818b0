// Tables held to a noise floor: which floor counts at a length, what is then called faster, and
// what the note says.
#include "harness/tables/floors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/tables/closing.h"
#include "harness/tables/table.h"
#include "tests/harness/tables/speed_row.h"

namespace attn::floors_test {
namespace {

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
  EXPECT_NE(bare.notes.back().find("performer (0.98 of its time)"), std::string::npos);
  const Table held = closing_table(all, {floor_at(64, 0.05)}).value();
  EXPECT_EQ(held.rows.at(2).at(1), "not up to 128");
  EXPECT_TRUE(held.notes.back().starts_with("no variant is faster than full at 128 tokens"))
      << held.notes.back();
}

}  // namespace
}  // namespace attn::floors_test
