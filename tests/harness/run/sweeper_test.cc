// run_sweep: statuses, the gate, limits, order of phases, signals and exit codes; one test with the
// real program.
#include "harness/plan/plan.h"
#include "harness/run/run.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/places.h"
#include "tests/said.h"

namespace attn::sweeper_test {
namespace {

using Sweep = FakeSweep;

std::map<std::string, std::string> statuses(const SweepResult& result) {  // variant -> status
  std::map<std::string, std::string> found;
  for (const Json& row : lines(result)) found[row["variant"]["name"]] = row["status"];
  return found;
}

TEST_F(Sweep, WritesOneRowACellAndAValidFile) {
  request_.axes = {{"measure", "memory,fidelity"}, {"length", "64,128"}};
  std::vector<size_t> done;
  const size_t cells = plan(request_).cells.size();
  const SweepResult result = sweep([&](const Progress& progress) {
    if (progress.row) done.push_back(progress.done);
    EXPECT_EQ(progress.total, cells);
  });
  EXPECT_EQ(exit_code(result), 0);
  ASSERT_EQ(result.rows.size(), cells);
  for (size_t i = 0; i < done.size(); i++) EXPECT_EQ(done[i], i + 1);
  EXPECT_EQ(done.size(), result.rows.size());
  const std::vector<Json> rows =
      read_rows(request_.output);  // checks every line against the schema
  ASSERT_EQ(rows.size(), result.rows.size() + 1);
  EXPECT_EQ(rows[0]["kind"], "run");
  EXPECT_EQ(rows[0]["argv"], Json({"run"}));
  EXPECT_EQ(rows[0]["environment"]["calibration"]["threads"], 2);
  for (size_t i = 1; i < rows.size(); i++) EXPECT_EQ(rows[i]["run"], rows[0]["run"]);
}

TEST_F(Sweep, FailuresAreRowsAndTheRestGoesOn) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full", "truncated", "linformer", "performer", "linear"};
  behave(R"(*'"do":"measure"'*'"full"'*) echo 'it broke' >&2; exit 3;;
*'"do":"measure"'*'"truncated"'*) kill -SEGV $$;;
*'"do":"measure"'*'"linformer"'*) kill -KILL $$;;
*'"do":"measure"'*'"performer"'*) echo nonsense;;)");
  const SweepResult result = sweep();
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_EQ(statuses(result), (std::map<std::string, std::string>{{"full", "failed"},
                                                                  {"truncated", "failed"},
                                                                  {"linformer", "oom"},
                                                                  {"performer", "failed"},
                                                                  {"linear", "ok"}}));
  std::string reasons;
  for (const Json& row : lines(result))
    reasons += row["reason"].is_null() ? "" : row["reason"].get<std::string>() + "\n";
  for (const char* part :
       {"exit code 3: it broke", "signal 11", "killed by the system", "no result"})
    EXPECT_TRUE(says(reasons, part));
}

TEST_F(Sweep, TakesTheStatusTheCellGives) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full"};
  behave(R"(*'"do":"measure"'*) echo '{"status":"oom","reason":"2 GiB above the limit"}';;)");
  const SweepResult result = sweep();
  EXPECT_EQ(lines(result)[0]["status"], "oom");
  EXPECT_EQ(lines(result)[0]["reason"], "2 GiB above the limit");
  EXPECT_TRUE(lines(result)[0]["metrics"].is_null());
}

TEST_F(Sweep, TimeLimit) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full", "linear"};
  request_.timeout_s = 1;
  behave(R"(*'"do":"measure"'*'"full"'*) sleep 20;;)");
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = sweep();
  EXPECT_EQ(statuses(result),
            (std::map<std::string, std::string>{{"full", "timeout"}, {"linear", "ok"}}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Sweep, ARedCheckStopsPublication) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full", "linformer[rank=[8,16]]"};
  behave(
      R"(*'"do":"check"'*'"rank":8'*) echo '{"status":"ok","reason":null,"red":"padding","detail":"0.3 > 1e-5"}';;
*'"do":"check"'*'"rank":16'*) kill -SEGV $$;;)");
  const SweepResult result = sweep();
  EXPECT_TRUE(result.gate_failed);
  EXPECT_EQ(exit_code(result), 5);
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(lines(result)[0]["status"], "ok");
  EXPECT_EQ(lines(result)[1]["status"], "failed");
  EXPECT_EQ(lines(result)[1]["reason"], "contract check 'padding' is red: 0.3 > 1e-5");
  EXPECT_EQ(lines(result)[2]["status"], "failed");
  EXPECT_EQ(requests("check").size(), 3u) << "one check for each variant and its parameters";
  EXPECT_EQ(requests("measure").size(), 1u) << "a red variant must not be measured";
  EXPECT_EQ(exit_code(sweep()), 5) << "also when its rows are only read again";
}

// No check is red then: the cells end as the checks did.
TEST_F(Sweep, ChecksThatDidNotFinishGiveTheirStatus) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full", "linear", "mean"};
  behave(
      R"(*'"do":"check"'*'"full"'*) kill -KILL $$;;
*'"do":"check"'*'"linear"'*) exit 9;;)");
  const SweepResult result = sweep();
  EXPECT_EQ(statuses(result), (std::map<std::string, std::string>{
                                  {"full", "oom"}, {"linear", "failed"}, {"mean", "ok"}}));
  EXPECT_FALSE(result.gate_failed);
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_EQ(requests("measure").size(), 1u);
  EXPECT_EQ(exit_code(sweep()), 1) << "also when its rows are only read again";
}

TEST_F(Sweep, AVerdictThatSaysNothingStopsPublication) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full"};
  request_.force = true;
  const std::pair<const char*, int> verdicts[] = {
      {R"("detail":"")", 1},
      {R"("red":"","detail":"0.3")", 5},  // without a name
      {R"("red":7,"detail":"")", 1},
      {R"("red":null)", 1}};
  for (const auto& [verdict, code] : verdicts) {
    behave(
        fmt::format(R"(*'"do":"check"'*) echo '{{"status":"ok","reason":null,{}}}';;)", verdict));
    EXPECT_EQ(exit_code(sweep()), code) << verdict;
    EXPECT_EQ(requests("measure").size(), 0u) << verdict;
  }
}

TEST_F(Sweep, ARedTaskStopsPublicationToo) {
  request_.variants = {"full"};
  request_.tasks = {"mqar"};
  behave(
      R"(*'"do":"check"'*'"mqar"'*) echo '{"status":"ok","reason":null,"red":"splits","detail":"they overlap"}';;)");
  const SweepResult result = sweep();
  EXPECT_EQ(exit_code(result), 5);
  EXPECT_EQ(requests("measure").size(), 0u);
}

TEST_F(Sweep, SkippedCellsAreWrittenAndNeverRun) {
  request_.axes = {{"measure", "memory"}, {"causal", "true"}};
  request_.variants = {"linformer"};
  const SweepResult result = sweep();
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(lines(result)[0]["status"], "skipped");
  EXPECT_FALSE(lines(result)[0]["reason"].get<std::string>().empty());
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_TRUE(requests("measure").empty());
}

TEST_F(Sweep, FailFastStops) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full", "linear"};
  request_.fail_fast = true;
  behave(R"(*'"do":"measure"'*) exit 1;;)");
  EXPECT_EQ(sweep().rows.size(), 1u);
}

// What stops early on one task is known before the rest of that task is forecast.
TEST_F(Sweep, ACellOfEachTaskIsTrainedBeforeASecondOne) {
  behave(
      R"(*'"measure":"accuracy"'*) echo '{"status":"ok","reason":null,"samples":[],"metrics":{"metric":"accuracy","test":0.5,"validation":0.5,"chance":0.1,"shortcuts":{},"lift":0.1,"steps":1,"examples":1,"train_s":1,"examples_per_s":1,"parameters":1}}';;)");
  request_.variants = {"full", "linear", "performer"};
  request_.tasks = {"mqar[preset=small]", "copy[length=32]", "copy[length=64]"};
  request_.axes = {{"seed", "0,1"}};
  std::vector<std::string> begun;  // labels: "accuracy full on copy[length=32] seed=1"
  const SweepResult result = sweep([&](const Progress& now) {
    if (!now.row && now.current.find(" on ") != std::string::npos) begun.push_back(now.current);
  });
  EXPECT_EQ(exit_code(result), 0);
  ASSERT_EQ(begun.size(), 18u);
  for (size_t first = 0; first < begun.size(); first += 3) {
    std::set<std::string> tasks;
    for (size_t i = first; i < first + 3; i++) {
      const size_t from = begun[i].find(" on "), to = begun[i].find(" seed=");
      tasks.insert(begun[i].substr(from, to - from));
      EXPECT_EQ(begun[i].substr(to), first < 9 ? " seed=0" : " seed=1");
    }
    EXPECT_EQ(tasks.size(), 3u) << "from " << begun[first];
  }
  std::map<std::string, double> forecasts;
  for (const Cell& cell : plan(request_).cells) forecasts[cell.label] = cell.forecast_s;
  for (size_t i = 0; i + 3 < 9; i++)
    EXPECT_GE(forecasts.at(begun[i]), forecasts.at(begun[i + 3])) << "the longest first";
}

TEST_F(Sweep, HandsTheMemoryLimitDown) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full"};
  request_.max_memory_bytes = 123456789;
  sweep();
  EXPECT_EQ(requests("measure").at(0)["max_memory_bytes"], 123456789);
}

TEST_F(Sweep, ASignalEndsTheCurrentCellAndKeepsTheRest) {
  request_.axes = {{"measure", "memory"}, {"length", "64,128,256"}};
  request_.variants = {"full"};
  behave(R"(*'"do":"measure"'*'"length":128'*) sleep 20;;)");
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = sweep([](const Progress& progress) {
    if (!progress.row && progress.current.find("length=128") != std::string::npos) raise(SIGTERM);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_EQ(exit_code(result), 143);
  EXPECT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(read_rows(request_.output).size(), 2u);
}

TEST_F(Sweep, RefusesAFileItMayNotContinue) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full"};
  sweep();
  request_.resume = false;
  EXPECT_THROW(sweep(), Error);
  request_.force = true;
  EXPECT_EQ(sweep().rows.size(), 1u);
  EXPECT_EQ(requests("measure").size(), 2u) << "force measures again";
}

TEST_F(Sweep, TheRealProgramMeasuresEveryMeasure) {
  request_.program = program_file().string();
  request_.timeout_s = 300;
  request_.variants = {"full[kernel=materialized]", "linear"};
  request_.tasks = {"mqar[vocab=32,pairs=2,length=16,train_examples=64]"};
  request_.training =
      "steps=3,width=16,layers=1,batch=4,eval_every=2,validation_examples=8,test_examples=8";
  request_.axes = {{"measure", "speed,memory,accuracy,fidelity,reach"},
                   {"length", "32"},
                   {"heads", "1"},
                   {"head_dim", "16"},
                   {"repetitions", "2"}};
  const SweepResult result = sweep();
  EXPECT_EQ(exit_code(result), 0);
  ASSERT_EQ(result.rows.size(), 10u);
  for (const Json& row : lines(result)) EXPECT_EQ(row["status"], "ok") << row.dump();
  read_rows(request_.output);
}

TEST_F(Sweep, TheRealProgramKeepsToItsMemory) {
  request_.program = program_file().string();
  request_.timeout_s = 300;
  request_.variants = {"full[kernel=materialized]"};
  request_.axes = {{"measure", "memory"}, {"length", "2048"}, {"heads", "4"}};
  request_.max_memory_bytes = 32 << 20;  // its scores alone take 64 MiB
  const SweepResult result = sweep();
  EXPECT_EQ(lines(result).at(0)["status"], "oom") << lines(result)[0].dump();
  EXPECT_EQ(exit_code(result), 1);
}

}  // namespace
}  // namespace attn::sweeper_test
