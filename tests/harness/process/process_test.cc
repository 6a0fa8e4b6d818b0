// Child processes: output, exit codes, signals, time limits, and that none is left behind.
#include "harness/process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

namespace attn::process_test {
namespace {

using End = ChildResult::End;

ChildSpec shell(const std::string& script, double timeout_s = 0) {
  return {"/bin/sh", {"-c", script}, "", timeout_s};
}

ChildResult run(const ChildSpec& spec) {
  ChildPool pool;
  pool.start(7, spec);
  const auto ended = pool.wait();
  EXPECT_TRUE(ended && ended->first == 7);
  EXPECT_EQ(pool.running(), 0u);
  return ended ? ended->second : ChildResult{};
}

// While it lives, orphans below this process become its children, so that their end can be seen.
struct Adoption {
  Adoption() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Adoption() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

// Or goes within ten seconds: on a busy machine a killed process ends when it runs again.
bool is_gone(pid_t process) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (kill(process, 0) == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return kill(process, 0) != 0 && errno == ESRCH;
}

bool was_killed(pid_t orphan) {
  int status = 0;
  return waitpid(orphan, &status, 0) == orphan && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGKILL;
}

// In a process of its own, since it ends: `body` runs there, and its wait status comes back. One
// that stays stopped is killed after a minute.
int status_of(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

TEST(Process, HandsOverInputAndOutput) {
  ChildSpec spec = shell("cat; echo trouble >&2");
  spec.input = std::string(3 << 20, 'x') + "end";  // larger than any pipe's buffer
  const ChildResult result = run(spec);
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output, spec.input);
  EXPECT_EQ(result.error_tail, "trouble\n");
}

TEST(Process, AddsToTheEnvironmentWhatIsNotThere) {
  setenv("ATTN_OLD", "old", 1);
  ChildSpec spec = shell("echo $ATTN_OLD $ATTN_NEW");
  spec.environment = {"ATTN_NEW=new", "ATTN_OLD=other"};
  EXPECT_EQ(run(spec).output, "old new\n");
  unsetenv("ATTN_OLD");
}

TEST(Process, MarksEachChildWithItsNumber) {
  setenv("ATTN_SWEEP", "1", 1);
  EXPECT_EQ(run(shell("echo $ATTN_SWEEP")).output, std::to_string(getpid()) + "\n");
  unsetenv("ATTN_SWEEP");
}

TEST(Process, TellsExitCodesAndSignals) {
  EXPECT_EQ(run(shell("exit 3")).code, 3);
  const ChildResult crashed = run(shell("echo half; kill -SEGV $$"));
  EXPECT_EQ(crashed.end, End::signalled);
  EXPECT_EQ(crashed.code, SIGSEGV);
  EXPECT_EQ(crashed.output, "half\n");
  const ChildResult missing = run({"/nonexistent/program", {}, "", 0});
  EXPECT_EQ(missing.code, 127);
  EXPECT_EQ(missing.error_tail, "cannot start '/nonexistent/program': No such file or directory");
}

TEST(Process, KeepsTheTailOfStderr) {
  const ChildResult result = run(
      shell("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; echo last >&2"));
  EXPECT_LE(result.error_tail.size(), 4096u);
  EXPECT_TRUE(result.error_tail.ends_with("last\n"));
}

TEST(Process, KillsWhatTakesTooLong) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = run(shell("sleep 30 & echo $!; wait", 0.2));
  EXPECT_EQ(result.end, End::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(is_gone(std::stoi(result.output))) << "a grandchild outlived the time limit";
}

// Three generations, each in a session of its own.
TEST(Process, EndsWhatAChildForksAway) {
  const ChildResult result =
      run(shell("setsid sh -c 'setsid sleep 300 >/dev/null 2>&1 & echo $!' & wait; echo $!"));
  EXPECT_EQ(result.code, 0);
  const pid_t daemon = std::stoi(result.output);
  EXPECT_TRUE(is_gone(daemon));
}

TEST(Process, LeavesAloneWhatWasThereBefore) {
  const pid_t before = fork();
  if (before == 0) {
    pause();
    _exit(0);
  }
  run(shell("exit 0"));
  EXPECT_EQ(kill(before, SIGKILL), 0);
  EXPECT_TRUE(was_killed(before));
}

// The system hands over an orphan that was there before, and others with it.
TEST(Process, LeavesAloneAnOrphanOfOthers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t made = fork();
    if (made > 0 && write(ends[1], &made, sizeof made) < 0) _exit(1);
    while (true) pause();
  }
  pid_t other = 0;
  ASSERT_EQ(read(ends[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  for (const int end : ends) close(end);
  ChildPool pool;
  pool.start(0, shell("exit 0"));
  kill(parent, SIGKILL);
  EXPECT_TRUE(was_killed(parent));
  EXPECT_TRUE(pool.wait());
  EXPECT_EQ(kill(other, SIGKILL), 0);
  EXPECT_TRUE(was_killed(other));
}

// It goes on after twice its limit.
TEST(Process, TimeInWhichTheChildIsStoppedIsNotCounted) {
  // CONT again and again: the first may come before STOP.
  const ChildResult result =
      run(shell("(sleep 2; while kill -CONT $$; do sleep 0.2; done) 2>/dev/null & kill -STOP $$; "
                "exit 3",
                1));
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(result.was_stopped);
  EXPECT_FALSE(run(shell("exit 0")).was_stopped);
}

// Whoever stops this process leaves the child running: its end is looked at before its limit.
TEST(Process, TimeInWhichThisProcessIsStoppedIsNotCounted) {
  const int status = status_of([] {
    ChildPool pool;
    pool.start(0, shell("sleep 0.5; kill -STOP $PPID; sleep 4; kill -CONT $PPID", 3));
    const auto ended = pool.wait();
    _exit(ended && ended->second.end == End::exited && ended->second.stood_still ? 0 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Three writers, so that there is always more to read.
constexpr const char* kBabble = "yes & yes & yes";
constexpr const char* kBabbleOnBoth = "yes & yes & yes >&2 & yes >&2 & yes >&2";

// Each in a process of its own, which SIGALRM ends where it does not come back.
TEST(Process, AnEndlessOutputHidesNoTimeLimit) {
  for (const char* script : {kBabble, kBabbleOnBoth}) {
    const auto start = std::chrono::steady_clock::now();
    const int status = status_of([&] {
      alarm(20);
      const ChildResult result = run(shell(script, 1));
      _exit(result.end == End::timeout && result.output.substr(0, 4) == "y\ny\n" &&
                    result.output.size() <= size_t{64} << 20 && result.error_tail.size() <= 4096
                ? 0
                : 1);
    });
    EXPECT_LT(seconds_since(start), 10) << script;
    EXPECT_EQ(status, 0) << script;
  }
}

TEST(Process, AnEndlessOutputHidesNoSignal) {
  const auto start = std::chrono::steady_clock::now();
  const int status = status_of([] {
    alarm(20);
    const InterruptGuard guard;
    const std::string parent = std::to_string(getpid());
    ChildPool pool;
    pool.start(0, shell(std::string(kBabbleOnBoth) + " & sleep 1; kill -INT " + parent + "; wait"));
    _exit(pool.wait() ? 1 : InterruptGuard::signal());
  });
  EXPECT_LT(seconds_since(start), 10);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), SIGINT);
}

TEST(Process, RunsSeveralAtOnce) {
  ChildPool pool;
  for (size_t i = 0; i < 4; i++) pool.start(i, shell("sleep 0.5; exit " + std::to_string(i)));
  const auto start = std::chrono::steady_clock::now();
  std::set<size_t> tickets;
  while (const auto ended = pool.wait()) {
    EXPECT_EQ(ended->second.code, static_cast<int>(ended->first));
    tickets.insert(ended->first);
  }
  EXPECT_EQ(tickets.size(), 4u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1900));
}

TEST(Process, LeavesNothingBehind) {
  {
    ChildPool pool;
    pool.start(0, shell("sleep 30"));
    pool.start(1, shell("sleep 30"));
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

TEST(Process, WaitEndsAtASignal) {
  const InterruptGuard guard;
  ChildPool pool;
  pool.start(0, shell("sleep 30"));
  EXPECT_EQ(InterruptGuard::signal(), 0);
  raise(SIGTERM);
  EXPECT_EQ(InterruptGuard::signal(), SIGTERM);
  EXPECT_FALSE(pool.wait());
}

// A batch system sends SIGTERM to every process of a job, in any order.
TEST(Process, AChildOutlivesASignalToTheWholeJob) {
  ChildPool pool;
  pool.start(7, shell("kill -TERM $$; kill -INT $$; echo answered"));
  const auto ended = pool.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->second.end, ChildResult::End::exited);
  EXPECT_EQ(ended->second.output, "answered\n");
}

TEST(Process, ASecondSignalEndsTheProcess) {
  const int status = status_of([] {
    const InterruptGuard guard;
    raise(SIGINT);
    raise(SIGINT);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(Process, ChildrenDieWithAParentThatIsKilled) {
  const Adoption adoption;
  const std::string file = testing::TempDir() + "orphan." + std::to_string(getpid());
  const int status = status_of([&] {
    ChildPool pool;
    pool.start(0,
               shell("echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 30"));
    while (access(file.c_str(), R_OK) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  pid_t orphan = 0;
  std::ifstream(file) >> orphan;
  EXPECT_TRUE(was_killed(orphan));
  std::remove(file.c_str());
}

}  // namespace
}  // namespace attn::process_test
