// The children of this process and their environments, by /proc; see strays.h.
#include "harness/process/strays.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

namespace attn {
namespace {

// Of every thread; empty where the system keeps no such list.
std::vector<pid_t> children_now() {
  std::vector<pid_t> all;
  std::error_code unknown;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", unknown)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) all.push_back(child);
  }
  return all;
}

bool is_among(const std::vector<pid_t>& list, pid_t one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// Since its start: a process that changed its environment later keeps the mark there.
bool has_mark(pid_t process, const std::string& mark) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  for (std::string variable; std::getline(file, variable, '\0');)
    if (variable == mark) return true;
  return false;
}

// A process that ends loses its memory, and with it the command line, before it can be reaped.
bool is_ending(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  return file.peek() == std::ifstream::traits_type::eof();
}

bool reaped(pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; }

// Whether it ended; one that waits for a disk may not, and the sweep goes on without it.
bool reaped_soon(pid_t child) {
  constexpr int kMostMs = 1000;
  for (int ms = 0; ms < kMostMs; ms++) {
    if (reaped(child)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

std::string Strays::mark() { return "ATTN_SWEEP=" + std::to_string(getpid()); }

Strays::Strays() : before_(children_now()) {
  prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Strays::~Strays() { prctl(PR_SET_CHILD_SUBREAPER, was_reaper_); }

void Strays::end(const std::vector<pid_t>& kept) const {
  constexpr int kGenerations = 100;  // the children of a stray that was killed come next
  bool found = true;
  for (int generation = 0; found && generation < kGenerations; generation++) {
    found = false;
    for (const pid_t child : children_now()) {
      if (is_among(kept, child) || is_among(before_, child)) continue;
      // One that ends has no environment, and only this process can reap it.
      if (has_mark(child, mark()))
        kill(child, SIGKILL);
      else if (!is_ending(child))
        continue;
      found = reaped_soon(child) || found;
    }
  }
}

}  // namespace attn
