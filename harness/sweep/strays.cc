// The children of this process, by /proc, and the end of those that nobody asked for; see strays.h.
#include "harness/sweep/strays.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

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

}  // namespace

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
      found = true;
      kill(child, SIGKILL);
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
}

}  // namespace attn
