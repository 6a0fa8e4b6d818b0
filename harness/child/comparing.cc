// See comparing.h.
#include "harness/child/comparing.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/memory.h"

namespace attn {

void unlimit_memory() {
  set_memory_limit(0);
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_DATA, &limit);
}

double comparing_budget(double measuring_s) {
  constexpr double kLeastBudget = 0.5;
  return std::max(kLeastBudget, measuring_s);
}

}  // namespace attn
