// fork, exec, poll and reap; see process.h. One thread, one poll loop; between fork and exec only
// async-signal-safe calls.
#include "harness/sweep/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/check.h"

namespace attn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kErrorTail = 4096;  // bytes of stderr kept: a sanitizer's first lines fit
constexpr size_t kMostOutput =
    64 << 20;                // bytes of stdout kept: a runaway child must not fill this process
constexpr int kTickMs = 50;  // how late a time limit or a signal may be noticed

volatile sig_atomic_t seen_signal = 0;

extern "C" void note_signal(int number) {
  if (seen_signal != 0) _exit(128 + number);
  seen_signal = number;
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A file in memory that holds `text`, at its start: the child's stdin, without a pipe that could
// block or break.
int input_file(const std::string& text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  ATTN_CHECK(file >= 0, "cannot make the input of a child process: {}", strerror(errno));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      close(file);
      throw_error("cannot write the input of a child process");
    }
    done += static_cast<size_t>(wrote);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

[[noreturn]] void become(char* const* argv, int input, int output, int error, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  dup2(input, 0);
  dup2(output, 1);
  dup2(error, 2);
  execv(argv[0], argv);
  const char* why = strerror(errno);
  const char text[] = "cannot start: ";
  if (write(2, text, sizeof text - 1) > 0 && write(2, why, strlen(why)) > 0) _exit(127);
  _exit(127);
}

}  // namespace

struct ChildPool::Child {
  size_t ticket = 0;
  pid_t pid = -1;
  int output = -1, error = -1;  // read ends; -1 after end of file
  Clock::time_point start;
  double timeout_s = 0;
  bool late = false;
  ChildResult result;

  // Reads what is there; false at the end of the file.
  bool drain(int& file, std::string& into, size_t most, bool keep_tail) {
    char buffer[65536];
    for (;;) {
      const ssize_t got = read(file, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return true;  // nothing more now
      if (got == 0) {
        close(file);
        file = -1;
        return false;
      }
      into.append(buffer, static_cast<size_t>(got));
      if (into.size() > most)
        into = keep_tail ? into.substr(into.size() - most) : into.substr(0, most);
    }
  }

  bool ended() {
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    if (output >= 0) drain(output, result.output, kMostOutput, false);
    if (error >= 0) drain(error, result.error_tail, kErrorTail, true);
    if (output >= 0) close(output);
    if (error >= 0) close(error);
    kill(-pid, SIGKILL);  // what it may have started itself
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

void ChildPool::start(size_t ticket, const ChildSpec& spec) {
  std::vector<char*> argv = {const_cast<char*>(spec.program.c_str())};
  for (const std::string& arg : spec.args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const int input = input_file(spec.input);
  int out[2], err[2];
  ATTN_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "cannot make a pipe: {}",
             strerror(errno));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(argv.data(), input, out[1], err[1], parent);
  close(input);
  close(out[1]);
  close(err[1]);
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  if (pid < 0) {
    close(out[0]);
    close(err[0]);
    throw_error(fmt::format("cannot start a child process: {}", strerror(errno)));
  }
  setpgid(pid, pid);  // also here, so that it holds before the first kill
  Child child;
  child.ticket = ticket;
  child.pid = pid;
  child.output = out[0];
  child.error = err[0];
  child.start = Clock::now();
  child.timeout_s = spec.timeout_s;
  children_.push_back(std::move(child));
}

std::optional<std::pair<size_t, ChildResult>> ChildPool::wait() {
  while (!children_.empty() && InterruptGuard::signal() == 0) {
    std::vector<pollfd> files;
    bool silent =
        false;  // a child that closed its pipes and is about to end: poll has nothing to wake for
    for (const Child& child : children_) {
      if (child.output >= 0) files.push_back({child.output, POLLIN, 0});
      if (child.error >= 0) files.push_back({child.error, POLLIN, 0});
      silent = silent || (child.output < 0 && child.error < 0);
    }
    poll(files.data(), files.size(), silent ? 1 : kTickMs);
    for (size_t i = 0; i < children_.size(); i++) {
      Child& child = children_[i];
      if (child.output >= 0) child.drain(child.output, child.result.output, kMostOutput, false);
      if (child.error >= 0) child.drain(child.error, child.result.error_tail, kErrorTail, true);
      if (child.timeout_s > 0 && !child.late && since(child.start) > child.timeout_s) {
        child.late = true;
        kill(-child.pid, SIGKILL);
      }
      if (!child.ended()) continue;
      std::pair<size_t, ChildResult> finished{child.ticket, std::move(child.result)};
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      return finished;
    }
  }
  return std::nullopt;
}

void ChildPool::kill_all() {
  for (Child& child : children_) kill(-child.pid, SIGKILL);
  for (Child& child : children_)
    while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  children_.clear();
}

namespace {
struct sigaction interrupt_before, terminate_before;
}

InterruptGuard::InterruptGuard() {
  seen_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;  // no SA_RESTART: poll returns, and the loop looks
  sigaction(SIGINT, &action, &interrupt_before);
  sigaction(SIGTERM, &action, &terminate_before);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &interrupt_before, nullptr);
  sigaction(SIGTERM, &terminate_before, nullptr);
  seen_signal = 0;
}

int InterruptGuard::signal() { return seen_signal; }

std::string signal_name(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

}  // namespace attn
