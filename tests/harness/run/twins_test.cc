// Cells that are measured twice: two files, each of a run of its own, in the same rounds; and the
// noise floors that run lines quote.
#include <signal.h>

#include <fstream>
#include <set>

#include "core/base/check.h"
#include "harness/run/noise_floors.h"
#include "harness/run/run.h"
#include "harness/store/user_cache.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/said.h"

namespace attn::twins_test {
namespace {

class Twins : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "speed"}, {"length", "64,128"}, {"repetitions", "6"}};
    request_.variants = {"full", "linear"};
    request_.twin = folder_ + "/twin.jsonl";
    request_.noise = folder_ + "/cache/noise.json";
  }
  SweepResult sweep_twice(const std::function<void(const Progress&)>& report = {}) {
    Plan doubled = plan(request_);
    add_twins(doubled);
    return run_sweep(request_, doubled, report);
  }
  std::vector<Json> cells_of(const std::string& path) const {
    std::vector<Json> all = read_rows(path);
    all.erase(all.begin());
    return all;
  }
};

TEST_F(Twins, EachCellIsARowInBothFiles) {
  const SweepResult result = sweep_twice();
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.rows.size(), 8u);
  std::multiset<std::string> one, other;
  for (const Json& row : cells_of(request_.output)) one.insert(row["cell"]);
  for (const Json& row : cells_of(request_.twin)) other.insert(row["cell"]);
  EXPECT_EQ(one.size(), 4u);
  EXPECT_EQ(one, other);
  const Json run = read_rows(request_.output)[0], twin = read_rows(request_.twin)[0];
  EXPECT_NE(run["run"], twin["run"]);
  EXPECT_EQ(run["environment"], twin["environment"]);
  EXPECT_EQ(run["config"], twin["config"]);
  EXPECT_EQ(requests("calibrate").size(), 1u);
}

TEST_F(Twins, VisitsOfBothAreInTheSameRounds) {
  request_.axes["length"] = "64";
  // With so many cells, three rounds of one order are one run in 800,000.
  request_.variants = {"full", "linear", "truncated", "performer", "linformer", "mean"};
  std::vector<std::string> visited;
  sweep_twice([&](const Progress& now) {
    if (!now.row && now.current.find(" round ") != std::string::npos)
      visited.push_back(now.current);
  });
  const size_t cells = 2 * request_.variants.size();
  ASSERT_EQ(visited.size(), 3 * cells);
  std::set<std::vector<bool>> orders;
  for (size_t round = 0; round < 3; round++) {
    std::vector<bool> is_twin;
    for (size_t i = cells * round; i < cells * (round + 1); i++) {
      EXPECT_TRUE(says(visited[i], fmt::format("round {}/3", round + 1)));
      is_twin.push_back(visited[i].find("again") != std::string::npos);
    }
    EXPECT_EQ(2 * std::count(is_twin.begin(), is_twin.end(), true), std::ssize(is_twin));
    orders.insert(is_twin);
  }
  EXPECT_GT(orders.size(), 1u) << "the order is random";
}

TEST_F(Twins, SkippedAndFailedCellsAreInBothFiles) {
  request_.variants = {"full", "linformer"};
  request_.axes["length"] = "64";
  request_.axes["causal"] = "true";
  behave(R"(*'"do":"measure"'*'"full"'*) exit 9;;)");
  EXPECT_EQ(exit_code(sweep_twice()), 1);
  for (const std::string& path : {request_.output, request_.twin}) {
    std::multiset<std::string> seen;
    for (const Json& row : cells_of(path)) seen.insert(row["status"]);
    EXPECT_EQ(seen, (std::multiset<std::string>{"failed", "skipped"})) << path;
  }
}

TEST_F(Twins, AnInterruptLeavesTheCellsThatAreDone) {
  size_t done = 0;
  const SweepResult cut = sweep_twice([&](const Progress& now) {
    if (now.row && ++done == 4) raise(SIGINT);
  });
  EXPECT_EQ(exit_code(cut), 130);
  EXPECT_EQ(cells_of(request_.output).size(), 2u);
  EXPECT_EQ(cells_of(request_.twin).size(), 2u);
  EXPECT_THROW(sweep_twice(), Error) << "both files must be new";
}

TEST_F(Twins, AFileThatHoldsRowsIsRefusedAndKept) {
  sweep_twice();
  const size_t held = read_rows(request_.twin).size();
  request_.output = folder_ + "/new.jsonl";
  EXPECT_THROW(sweep_twice(), Error);
  EXPECT_EQ(read_rows(request_.twin).size(), held);
}

FloorAt floor_at(int64_t length, double share, Mode mode = Mode::forward) {
  return {.mode = mode,
          .threads = 1,
          .length = length,
          .share = share,
          .cells = 5,
          .measured_at = "2026-01-31T12:00:00Z",
          .commit = "c"};
}

TEST_F(Twins, ARunLineQuotesTheFloorsOfItsModes) {
  request_.twin.clear();
  EXPECT_TRUE(sweep().run.noise_floor.empty());
  EXPECT_FALSE(read_rows(request_.output)[0].contains("noise_floor"));
  keep_floors(request_.noise, {floor_at(64, 0.02), floor_at(64, 0.3, Mode::train)});
  request_.output = folder_ + "/later.jsonl";
  const SweepResult result = sweep();
  ASSERT_EQ(result.run.noise_floor.size(), 1u);
  EXPECT_EQ(result.run.noise_floor[0].share, 0.02);
  const Json line = read_rows(request_.output)[0];
  EXPECT_EQ(line["noise_floor"],
            Json::parse(R"([{"mode":"forward","threads":1,"length":64,"share":0.02,"cells":5,)"
                        R"("measured_at":"2026-01-31T12:00:00Z","commit":"c"}])"));
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.output = folder_ + "/memory.jsonl";
  EXPECT_TRUE(sweep().run.noise_floor.empty()) << "no time is held to it";
}

TEST_F(Twins, FloorsOfTwoProgramsAreKeptAndANewerOneStands) {
  keep_floors(request_.noise, {floor_at(128, 0.1), floor_at(64, 0.2)});
  keep_floors(request_.noise, {floor_at(64, 0.3), floor_at(64, 0.4, Mode::train)});
  const NoiseFloor kept = kept_floors(request_.noise);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].length, 64);
  EXPECT_EQ(kept[0].share, 0.3);
  EXPECT_EQ(kept[0].commit, "c");
  EXPECT_EQ(kept[1].length, 128);
  EXPECT_EQ(kept[2].mode, Mode::train);
}

TEST_F(Twins, FloorsOfAnotherMachineAndDamagedOnesCountNothing) {
  keep_floors(request_.noise, {floor_at(64, 0.2)});
  std::ifstream in(request_.noise);
  Json all = Json::parse(in);
  for (const char* damage : {R"({"machine":"another"})", R"({"share":-1})", R"({"share":"x"})",
                             R"({"mode":"sideways"})", R"({"length":0})", R"({"machine":7})"}) {
    Json changed = all;
    for (auto& [hash, value] : changed.items()) value.update(Json::parse(damage));
    std::ofstream(request_.noise) << changed;
    EXPECT_TRUE(kept_floors(request_.noise).empty()) << damage;
  }
  EXPECT_EQ(UserCache(request_.noise).fault(), "");
  for (const char* text : {"{\"torn", "[]", ""}) {
    std::ofstream(request_.noise) << text;
    EXPECT_TRUE(kept_floors(request_.noise).empty()) << text;
    EXPECT_NE(UserCache(request_.noise).fault(), "") << text;
  }
  keep_floors(request_.noise, {floor_at(64, 0.2)});
  EXPECT_EQ(kept_floors(request_.noise).size(), 1u);
  EXPECT_TRUE(kept_floors("").empty());
  EXPECT_TRUE(kept_floors(folder_ + "/none.json").empty());
}

}  // namespace
}  // namespace attn::twins_test
