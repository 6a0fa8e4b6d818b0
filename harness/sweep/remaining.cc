// Running sums of forecasts; see remaining.h.
#include "harness/sweep/remaining.h"

#include <algorithm>
#include <utility>

#include "harness/sweep/pilots.h"

namespace attn {

Remaining::Remaining(const Plan& plan, int jobs) : open_(plan.cells.size()) {
  for (const Cell& cell : plan.cells) {
    shares_.push_back(share_of(cell, jobs));
    left_ += shares_.back();
  }
}

void Remaining::hold(size_t cell) {
  left_ -= std::exchange(shares_[cell], 0);
  open_--;
}

void Remaining::finish(size_t cell) {
  done_ += shares_[cell];
  hold(cell);
}

double Remaining::seconds_left(double spent_s) const {
  if (open_ == 0) return 0;                             // not what rounding left of the sum
  const double pace = done_ > 1 ? spent_s / done_ : 1;  // this machine against the forecast
  return std::max(0.0, left_) * std::clamp(pace, 0.1, 10.0);
}

}  // namespace attn
