// Processes that a child started and left: daemons, which no process group holds. While a Strays
// lives, the system hands them to this process (PR_SET_CHILD_SUBREAPER), so that they can be ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace attn {

class Strays {
 public:
  Strays();
  ~Strays();
  Strays(const Strays&) = delete;
  Strays& operator=(const Strays&) = delete;
  // "ATTN_SWEEP=1234", by the number of this process: each child is given it, and what a child
  // starts inherits it.
  static std::string mark();
  // Kills and reaps the children of this process that have the mark, but for `kept` and those that
  // were there before. The system also hands over orphans that others left: they are left alone.
  void end(const std::vector<pid_t>& kept) const;

 private:
  std::vector<pid_t> before_;
  int was_reaper_ = 0;
};

}  // namespace attn
