// Resuming: only what is missing runs, no cell twice, whatever moment the sweep was killed at.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "core/base/io_error.h"
#include "core/base/rng.h"
#include "harness/run/run.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/said.h"

namespace attn::resume_test {
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
  const Json first = lines(sweep());
  EXPECT_EQ(requests("measure").size(), 2u);
  const SweepResult again = sweep();
  EXPECT_EQ(requests("measure").size(), 2u);
  EXPECT_EQ(requests("calibrate").size(), 1u);
  EXPECT_EQ(Json(lines(again)), first) << "the rows are those of the file";
  EXPECT_FALSE(again.run.run.empty());
}

// What another sweep of the same file says; the file must stay as it is.
std::string refusal(const std::string& path, const std::function<void()>& other) {
  const std::vector<Json> before = read_rows(path);
  const std::string message = fault_of(other);
  EXPECT_EQ(Json(read_rows(path)), Json(before));
  return message;
}

TEST_F(Resume, AFileIsWidenedOnTheSameMachine) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  sweep();
  request_.axes["length"] = "64,128";
  const SweepResult wider = sweep();
  EXPECT_EQ(wider.rows.size(), 2u);
  EXPECT_EQ(wider.reused, 1u);
  EXPECT_EQ(requests("measure").size(), 2u) << "only the new length is measured";
  EXPECT_EQ(requests("calibrate").size(), 1u);
  EXPECT_EQ(run_lines(read_rows(request_.output)), 2);
  const std::vector<Json> rows = read_rows(request_.output);
  EXPECT_EQ(rows[2]["run"], rows[0]["run"]);
  EXPECT_EQ(rows[2]["config"]["sweeps"][0]["axes"]["length"], Json({64, 128}));
  request_.axes["length"] = "64";
  EXPECT_EQ(sweep().reused, 1u) << "the first question again";
  request_.timeout_s = 77;  // limits may change between attempts
  request_.axes["length"] = "64,128,256";
  sweep();
  EXPECT_EQ(run_lines(read_rows(request_.output)), 3);
}

TEST_F(Resume, AnotherMachineIsRefused) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  sweep();
  std::vector<Json> rows = read_rows(request_.output);
  rows[0]["environment"]["cpu_model"] = "another processor";
  {
    RowWriter writer(request_.output, true);
    for (const Json& row : rows) writer.append(row);
  }
  request_.axes["length"] = "64,128";
  const std::string message = refusal(request_.output, [&] { sweep(); });
  EXPECT_TRUE(says(message, "was measured elsewhere (environment.cpu_model"));
}

// Times and bytes are the machine's.
TEST_F(Resume, OnlyScoresOfAnotherFileStand) {
  request_.axes = {{"measure", "memory,fidelity"}, {"length", "64"}};
  request_.variants = {"full"};
  sweep();
  const std::string other = folder_ + "/other.jsonl";
  std::filesystem::rename(request_.output, other);
  request_.held = {other};
  EXPECT_EQ(sweep().reused, 0u);
  EXPECT_EQ(requests("measure").size(), 4u);
}

// Nodes of one kind differ by what their firmware reserves.
TEST_F(Resume, AFewPagesMakeNoOtherMachine) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  sweep();
  std::vector<Json> rows = read_rows(request_.output);
  Json& memory = rows[0]["environment"]["memory_bytes"];
  const auto bytes = memory.get<int64_t>();
  const bool is_in_upper_half = (bytes >> 29) % 2 == 1;  // so that both round to the same GiB
  memory = is_in_upper_half ? bytes + 8192 : bytes - 8192;
  const auto write_back = [&] {
    RowWriter writer(request_.output, true);
    for (const Json& row : rows) writer.append(row);
  };
  write_back();
  request_.axes["length"] = "64,128";
  EXPECT_EQ(sweep().reused, 1u);
  memory = bytes * 2;
  write_back();
  const std::string message = refusal(request_.output, [&] { sweep(); });
  EXPECT_TRUE(says(message, "was measured elsewhere (environment.memory_bytes"));
}

TEST_F(Resume, OtherSourcesAreRefused) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  sweep();
  std::vector<Json> rows = read_rows(request_.output);
  rows[1]["source"]["variant"] = "0123456789abcdef";
  rows[1]["cell"] = "fedcba9876543210";  // the id hashes the source
  {
    RowWriter writer(request_.output, true);
    for (const Json& row : rows) writer.append(row);
  }
  const std::string message = refusal(request_.output, [&] { sweep(); });
  EXPECT_TRUE(says(message, "other sources of full"));
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

TEST_F(Resume, RetriedRowsAreMeasuredAgainInTheirFile) {
  request_.axes = {{"measure", "memory"}, {"length", "64,128,256"}};
  request_.variants = {"full"};
  behave(R"(*'"do":"measure"'*'"length":64'*) exit 3;;
*'"do":"measure"'*'"length":128'*) echo '{"status":"oom","reason":"too much"}';;)");
  sweep();
  const std::vector<Json> before = read_rows(request_.output);
  behave("");
  request_.retry = {"diverged", "noisy"};
  EXPECT_EQ(sweep().reused, 3u) << "no row is of these";
  EXPECT_EQ(Json(read_rows(request_.output)), Json(before));
  request_.retry = {"oom"};
  EXPECT_EQ(sweep().reused, 2u);
  request_.retry = {"failed"};
  const SweepResult last = sweep();
  EXPECT_EQ(last.reused, 2u) << "the first cell failed still, the second no more";
  for (const Json& row : lines(last)) EXPECT_EQ(row["status"], "ok");
  const std::vector<Json> after = read_rows(request_.output);
  EXPECT_EQ(after.size(), before.size());
  for (const auto& [cell, count] : cell_counts(after)) EXPECT_EQ(count, 1) << cell;
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(requests("measure").size(), 5u);
}

TEST_F(Resume, ARetryThatIsRefusedTakesNoRowOut) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  behave(R"(*'"do":"measure"'*) exit 3;;)");
  sweep();
  std::vector<Json> rows = read_rows(request_.output);
  rows[0]["environment"]["cpu_model"] = "another processor";
  {
    RowWriter writer(request_.output, true);
    for (const Json& row : rows) writer.append(row);
  }
  request_.retry = {"failed"};
  EXPECT_NE(refusal(request_.output, [&] { sweep(); }), "");
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

// What a child's NaN becomes in JSON, and other results that the schema refuses.
TEST_F(Resume, AResultThatMakesNoRowFailsItsCellAlone) {
  request_.axes = {{"measure", "fidelity"}, {"length", "64"}};
  request_.variants = {"full", "linear"};
  const std::string start = R"(*'"do":"measure"'*'"full"'*) echo '{"status":"ok","reason":null,)";
  for (const auto& [reply, why] : std::map<std::string, std::string>{
           {R"("samples":null,"metrics":{"relative_error":null,"cosine":1,"weights_kl":null})",
            "metrics.relative_error: expected number, got null"},
           {R"("samples":null,"metrics":{"cosine":1,"weights_kl":null})",
            "metrics.relative_error: missing"},
           {R"("samples":null,"metrics":[1])", "metrics: expected object"},
           {R"("samples":null,"metrics":7)", ""},
           {R"("samples":null)", "metrics: missing"}}) {
    request_.force = true;
    behave(start + reply + "}';;");
    const SweepResult result = sweep();
    EXPECT_EQ(exit_code(result), 1);
    ASSERT_EQ(result.rows.size(), 2u);
    EXPECT_EQ(lines(result)[0]["status"], "failed") << reply;
    const std::string reason = lines(result)[0]["reason"];
    EXPECT_TRUE(says(reason, "makes no row: "));
    EXPECT_TRUE(says(reason, why));
    EXPECT_EQ(lines(result)[1]["status"], "ok");
    const size_t asked = requests("measure").size();
    request_.force = false;
    EXPECT_EQ(lines(sweep()), lines(result)) << "resumed, and nothing is run again";
    EXPECT_EQ(requests("measure").size(), asked);
  }
}

// While it lives, files can be made no longer than limit() says, as on a disk that fills up.
class SmallDisk {
 public:
  SmallDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) { getrlimit(RLIMIT_FSIZE, &before_); }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  void limit(uintmax_t bytes) const {
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(Resume, AFullDiskInMidSweepLosesNothing) {
  request_.axes = {{"measure", "memory"}, {"length", "64:1024:*2"}};
  request_.variants = {"full"};
  std::string message;
  {
    const SmallDisk disk;
    try {
      sweep([&](const Progress& progress) {
        constexpr uintmax_t kHalfARow = 300;
        if (progress.row && progress.done == 2)
          disk.limit(std::filesystem::file_size(request_.output) + kHalfARow);
      });
    } catch (const IoError& error) {
      message = error.what();
    }
  }
  EXPECT_EQ(message, request_.output + ": cannot write: File too large");
  EXPECT_EQ(read_rows(request_.output).size(), 1u + 2);
  EXPECT_EQ(sweep().rows.size(), 5u);
  EXPECT_EQ(read_rows(request_.output).size(), 1u + 5);
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
}  // namespace attn::resume_test
