// Processes that a child started and left: daemons, which no process group holds. While a Strays
// lives, the system hands them to this process (PR_SET_CHILD_SUBREAPER), so that they can be ended.
#pragma once

#include <sys/types.h>

#include <vector>

namespace attn {

class Strays {
 public:
  Strays();
  ~Strays();
  Strays(const Strays&) = delete;
  Strays& operator=(const Strays&) = delete;
  // Kills and reaps every child of this process but `kept` and those that were there before.
  void end(const std::vector<pid_t>& kept) const;

 private:
  std::vector<pid_t> before_;
  int was_reaper_ = 0;
};

}  // namespace attn
