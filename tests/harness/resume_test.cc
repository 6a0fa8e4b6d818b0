// Resuming: only what is missing runs, no cell twice, whatever moment the sweep was killed at.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <map>
#include <thread>

#include "core/rng.h"
#include "tests/harness/fake_cell.h"

namespace attn {
namespace {

using Resume = FakeSweep;

std::map<std::string, int> cell_counts(const std::vector<Json>& rows) {
  std::map<std::string, int> counts;
  for (const Json& row : rows)
    if (row["kind"] == "cell") counts[row["cell"]]++;
  return counts;
}

int run_lines(const std::vector<Json>& rows) {
  int count = 0;
  for (const Json& row : rows) count += row["kind"] == "run";
  return count;
}

TEST_F(Resume, RunsOnlyWhatIsMissing) {
  request_.axes = {{"measure", "memory"}, {"length", "64,128"}};
  request_.variants = {"full"};
  const Json first = sweep().rows;
  EXPECT_EQ(requests("measure").size(), 2u);
  const SweepResult again = sweep();
  EXPECT_EQ(requests("measure").size(), 2u);
  EXPECT_EQ(requests("calibrate").size(), 1u);
  EXPECT_EQ(Json(again.rows), first) << "the rows are those of the file";
  EXPECT_FALSE(again.run.is_null());
}

TEST_F(Resume, AWiderSweepAddsItsCellsAndARunLine) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  const SweepResult narrow = sweep();
  request_.axes["length"] = "64,128";
  const SweepResult wide = sweep();
  EXPECT_EQ(wide.rows.size(), 2u);
  EXPECT_EQ(requests("measure").size(), 2u);
  EXPECT_NE(wide.run["run"], narrow.run["run"]);
  EXPECT_EQ(wide.rows[0]["run"], narrow.run["run"]);
  EXPECT_EQ(wide.rows[1]["run"], wide.run["run"]);
  EXPECT_EQ(run_lines(read_rows(request_.output)), 2);
}

TEST_F(Resume, FailuresAreKeptUntilForced) {
  request_.axes = {{"measure", "memory"}};
  request_.variants = {"full"};
  behave(R"(*'"do":"measure"'*) exit 1;;)");
  EXPECT_EQ(exit_code(sweep()), 1);
  behave("");
  EXPECT_EQ(exit_code(sweep()), 1);
  request_.force = true;
  EXPECT_EQ(exit_code(sweep()), 0);
}

TEST_F(Resume, AfterAnInterruptTheRestIsRun) {
  request_.axes = {{"measure", "memory"}, {"length", "64:1024:*2"}};
  request_.variants = {"full"};
  const SweepResult cut = sweep([](const Progress& progress) {
    if (progress.row && progress.done == 2) raise(SIGINT);
  });
  EXPECT_EQ(cut.rows.size(), 2u);
  const SweepResult rest = sweep();
  EXPECT_EQ(rest.rows.size(), 5u);
  EXPECT_EQ(exit_code(rest), 0);
  EXPECT_EQ(requests("measure").size(), 5u);
  EXPECT_EQ(run_lines(read_rows(request_.output)), 1);
}

TEST_F(Resume, KilledAtTenMomentsEveryCellIsThereOnce) {
  request_.axes = {
      {"measure", "speed,memory,fidelity"}, {"length", "64,128"}, {"repetitions", "2"}};
  request_.variants = {"full", "linear", "linformer"};
  Rng random = rng(1, "moments");
  for (int kill_number = 0; kill_number < 10; kill_number++) {
    const pid_t pid = fork();
    if (pid == 0) {
      try {
        _exit(exit_code(sweep()));
      } catch (const std::exception&) {
        _exit(99);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random.between(1, 120)));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 99)
        << "a file that a kill left could not be resumed";
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // a child between fork and exec may hold the lock
  }
  const SweepResult result = sweep();
  EXPECT_EQ(exit_code(result), 0);
  const auto counts = cell_counts(read_rows(request_.output));
  const Plan expected = plan(request_);
  EXPECT_EQ(expected.cells.size(), 18u);
  EXPECT_EQ(counts.size(), expected.cells.size());
  for (const Cell& cell : expected.cells)
    EXPECT_EQ(counts.count(cell.id) ? counts.at(cell.id) : 0, 1);
  EXPECT_EQ(result.rows.size(), expected.cells.size());
}

}  // namespace
}  // namespace attn
