// fork, exec, poll and reap; see process.h. One thread, one poll loop; between fork and exec only
// async-signal-safe calls.
#include "harness/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/io_error.h"

namespace attn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kErrorTail = 4096;  // bytes of stderr kept: a sanitizer's first lines fit
constexpr size_t kMostOutput =
    64 << 20;  // bytes of stdout kept: a runaway child must not fill this process
// Bytes read of a pipe before limits and signals are looked at again.
constexpr size_t kMostPerTurn = 256 << 10;
constexpr int kNotStarted = 127;  // exit code, as a shell says it
constexpr int kTickMs = 50;       // how late a time limit or a signal may be noticed
// Seconds between two looks at the children, each kTickMs after the other: past this one the
// process was stopped, or the machine was.
constexpr double kLongestTurn = 1;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A file in memory that holds `text`, at its start: the child's stdin, without a pipe that could
// block or break.
int input_file(const std::string& text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  ATTN_IO_CHECK(file >= 0, "cannot make the input of a child process: {}", strerror(errno));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int why = errno;
      close(file);
      throw_io_error(fmt::format("cannot write the input of a child process: {}", strerror(why)));
    }
    done += static_cast<size_t>(wrote);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

// What cannot be started sends errno through `fault`; its text is made by the parent.
[[noreturn]] void become(char* const* argv, char* const* variables, int input, int output,
                         int error, int fault, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotStarted);  // the parent died before the line above
  // A batch system sends SIGTERM to every process of a job. This process ends its children itself;
  // one that ended before would look like a cell that failed.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  dup2(input, 0);
  dup2(output, 1);
  dup2(error, 2);
  execve(argv[0], argv, variables);
  const int why = errno;
  if (write(fault, &why, sizeof why) < 0) _exit(kNotStarted);
  _exit(kNotStarted);
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    ATTN_IO_CHECK(pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe: {}", strerror(errno));
    read_end = ends[0], write_end = ends[1];
    fcntl(read_end, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int keep_read_end() { return std::exchange(read_end, -1); }
};

}  // namespace

struct ChildPool::Child {
  size_t ticket = 0;
  std::string program;
  pid_t pid = -1;
  int output = -1, error = -1;  // read ends; -1 after end of file
  int fault = -1;               // read end: errno of a program that could not be started
  int exit = -1;                // readable once the child ended; -1: this system has no such file
  Clock::time_point start;
  double timeout_s = 0, spent_s = 0;
  bool late = false, is_stopped = false;
  ChildResult result;

  // Reads what is there, `most` bytes at most: a child may write faster than this process reads.
  template <class Take>
  static void drain_file(int& file, size_t most, const Take& take) {
    char buffer[65536];
    for (size_t done = 0; file >= 0 && done < most;) {
      const ssize_t got = read(file, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;  // nothing more now
      if (got == 0) close(std::exchange(file, -1));
      done += static_cast<size_t>(got);
      take(std::string_view(buffer, static_cast<size_t>(got)));
    }
  }

  void drain(size_t most) {
    std::string &head = result.output, &tail = result.error_tail;
    drain_file(output, most, [&](std::string_view more) {
      head.append(more.substr(0, kMostOutput - head.size()));
    });
    drain_file(error, most, [&](std::string_view more) {
      tail.append(more);
      if (tail.size() > kErrorTail) tail.erase(0, tail.size() - kErrorTail);
    });
  }

  // Kills what the child may have started. Only before the child is reaped: its number, which is
  // the group's, may then belong to strangers.
  void kill_group() const { kill(-pid, SIGKILL); }

  void look_for_stops() {
    siginfo_t change{};
    while (waitid(P_PID, static_cast<id_t>(pid), &change, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           change.si_pid != 0) {
      is_stopped = change.si_code == CLD_STOPPED;
      result.was_stopped = true;
      change.si_pid = 0;
    }
  }

  bool ended() {
    siginfo_t end{};  // of a child that still runs it stays as it is
    if (waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT) == 0) {
      if (end.si_pid == 0) return false;
      kill_group();
    } else if (errno == EINTR) {
      return false;
    }
    int status = 0;  // stays so where SIGCHLD is ignored and the system reaps
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    drain(kMostOutput);  // all that the dead child left: a pipe's size depends on the machine
    if (int why = 0; read(fault, &why, sizeof why) == sizeof why)
      result.error_tail = fmt::format("cannot start '{}': {}", program, strerror(why));
    for (const int file : {output, error, fault, exit})
      if (file >= 0) close(file);
    result.seconds = since(start);
    result.end = late                  ? ChildResult::End::timeout
                 : WIFSIGNALED(status) ? ChildResult::End::signalled
                                       : ChildResult::End::exited;
    result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }
};

ChildPool::ChildPool() = default;
ChildPool::~ChildPool() { kill_all(); }
size_t ChildPool::running() const { return children_.size(); }

std::vector<pid_t> ChildPool::ids() const {
  std::vector<pid_t> all;
  for (const Child& child : children_) all.push_back(child.pid);
  return all;
}

void ChildPool::spend_time() {
  const double turn = since(std::exchange(looked_, Clock::now()));
  for (Child& child : children_) {
    child.look_for_stops();
    if (!child.is_stopped) child.spent_s += std::min(turn, kLongestTurn);
    child.result.stood_still = child.result.stood_still || turn > kLongestTurn;
  }
}

void ChildPool::start(size_t ticket, const ChildSpec& spec) {
  std::vector<char*> argv = {const_cast<char*>(spec.program.c_str())};
  for (const std::string& arg : spec.args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  std::string mark = Strays::mark();
  const std::string mark_name = mark.substr(0, mark.find('=') + 1);
  std::vector<char*> variables = {mark.data()};
  for (char** variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with(mark_name)) variables.push_back(*variable);
  for (const std::string& more : spec.environment)
    if (!getenv(more.substr(0, more.find('=')).c_str()))
      variables.push_back(const_cast<char*>(more.c_str()));
  variables.push_back(nullptr);
  Pipe output, error, fault;
  const int input = input_file(spec.input);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    become(argv.data(), variables.data(), input, output.write_end, error.write_end, fault.write_end,
           parent);
  const int why = errno;
  close(input);
  ATTN_IO_CHECK(pid > 0, "cannot start a child process: {}", strerror(why));
  setpgid(pid, pid);  // also here, so that it holds before the first kill
  Child child;
  child.ticket = ticket;
  child.program = spec.program;
  child.pid = pid;
  child.output = output.keep_read_end();
  child.error = error.keep_read_end();
  child.fault = fault.keep_read_end();
  child.exit = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // closed on exec by itself
  child.start = Clock::now();
  child.timeout_s = spec.timeout_s;
  children_.push_back(std::move(child));
}

std::optional<std::pair<size_t, ChildResult>> ChildPool::wait() {
  looked_ = Clock::now();
  while (!children_.empty() && InterruptGuard::signal() == 0) {
    std::vector<pollfd> files;
    bool silent = false;  // a child that closed its pipes and is about to end:
                          // poll has nothing to wake for
    for (const Child& child : children_) {
      if (child.output >= 0) files.push_back({child.output, POLLIN, 0});
      if (child.error >= 0) files.push_back({child.error, POLLIN, 0});
      if (child.exit >= 0) files.push_back({child.exit, POLLIN, 0});
      silent = silent || (child.output < 0 && child.error < 0 && child.exit < 0);
    }
    poll(files.data(), files.size(), silent ? 1 : kTickMs);
    spend_time();
    for (size_t i = 0; i < children_.size(); i++) {
      Child& child = children_[i];
      child.drain(kMostPerTurn);
      if (child.ended()) {  // before the limit: it may have ended while this process stood still
        std::pair<size_t, ChildResult> finished{child.ticket, std::move(child.result)};
        children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
        strays_.end(ids());
        return finished;
      }
      if (child.timeout_s > 0 && !child.late && child.spent_s > child.timeout_s) {
        child.late = true;
        child.kill_group();
      }
    }
  }
  return std::nullopt;
}

void ChildPool::kill_all() {
  for (const Child& child : children_) child.kill_group();
  for (Child& child : children_)
    while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  children_.clear();
  strays_.end({});
}

std::filesystem::path own_program() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

}  // namespace attn
