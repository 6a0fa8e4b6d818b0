// See stopping.h.
#include "harness/run/stopping.h"

namespace attn {

double relative_reach(const Summary& time) {
  return (time.ci_high - time.ci_low) / 2 / time.median;
}

std::optional<VisitsEnd> Stopping::after(const Summary& time, int64_t visits, double seconds) {
  if (precision_ == 0) {
    if (visits >= rounds_) return VisitsEnd::rounds;
    return std::nullopt;
  }
  const double reach = relative_reach(time);
  if (confirmed_at_ > 0 && visits >= confirmed_at_) {
    if (reach <= precision_) return VisitsEnd::precision;
    confirmed_at_ = 0;
  } else if (confirmed_at_ == 0 && visits >= kFirstLook && reach <= kNearlyNarrow * precision_) {
    confirmed_at_ = 2 * visits;
  }
  if (visits >= kMostVisits) return VisitsEnd::max_visits;
  if (max_time_s_ > 0 && seconds >= max_time_s_ && visits >= rounds_) return VisitsEnd::max_time;
  return std::nullopt;
}

}  // namespace attn
