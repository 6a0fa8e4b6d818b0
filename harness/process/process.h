// Child processes with a time limit: input on stdin, output and the tail of stderr kept, no
// zombies, no orphans. A child dies with this process (PR_SET_PDEATHSIG), also when that is killed
// by SIGKILL; it leads a process group of its own and ignores SIGINT and SIGTERM, which this
// process answers. What it starts and leaves ends with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/strays.h"

namespace attn {

struct ChildSpec {
  std::string program;
  std::vector<std::string> args;
  std::string input;
  // 0: none; past it the child's group is killed. Time in which the child was stopped (SIGSTOP) or
  // this process stood still, as after Ctrl-Z, is not counted.
  double timeout_s = 0;
  std::vector<std::string> environment = {};  // "NAME=value", where this process has no NAME
};

struct ChildResult {
  enum class End { exited, signalled, timeout };
  End end = End::exited;
  int code = 0;            // exit status or signal number
  std::string output;      // stdout
  std::string error_tail;  // the last few kilobytes of stderr; why, where the program could not be
                           // started (code 127)
  double seconds = 0;
  // This process did not run for over a second. The child may have been stopped too.
  bool stood_still = false;
  bool was_stopped = false;                                            // the child was, and went on
  bool may_have_paused() const { return stood_still || was_stopped; }  // its times say nothing
};

class ChildPool {
 public:
  ChildPool();
  ~ChildPool();  // kills and reaps what still runs
  ChildPool(const ChildPool&) = delete;
  ChildPool& operator=(const ChildPool&) = delete;

  void start(size_t ticket, const ChildSpec& spec);
  // The next child to end, with its ticket; nullopt when none runs or InterruptGuard has seen a
  // signal.
  std::optional<std::pair<size_t, ChildResult>> wait();
  size_t running() const;
  void kill_all();

 private:
  struct Child;
  std::vector<pid_t> ids() const;
  void spend_time();

  std::vector<Child> children_;
  Strays strays_;
  std::chrono::steady_clock::time_point looked_;  // when the children were last looked at
};

// While it lives, the first SIGINT or SIGTERM is only noted; a second one ends the process at once
// with 128 + signal (its children go with it).
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static int signal();  // the one seen, or 0
};

// From the first call on, how often this process was stopped (SIGSTOP, Ctrl-Z) and went on.
void count_stops();
int stops();

// The file of this program; empty where the system does not tell.
std::filesystem::path own_program();
std::string signal_name(int signal);  // "signal 11 (Segmentation fault)"

}  // namespace attn
