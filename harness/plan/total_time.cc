// See total_time.h.
#include "harness/plan/total_time.h"

#include <algorithm>

#include "core/base/parallel.h"

namespace attn {

double share_of(const Cell& cell, int jobs) {
  return cell.forecast_s / (runs_alone(cell.key.measure) ? 1 : jobs);
}

double forecast_total(const SweepRequest& request, const Plan& plan) {
  const int jobs = jobs_of(request);
  double seconds = 0, longest = 0;
  for (const Cell& cell : plan.cells) {
    seconds += share_of(cell, jobs);
    longest = std::max(longest, cell.forecast_s);
  }
  return std::max(seconds, longest);
}

int jobs_of(const SweepRequest& request) {
  return request.jobs > 0 ? request.jobs : hardware_threads();
}

}  // namespace attn
