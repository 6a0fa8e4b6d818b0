// The forecast of what is left of a sweep, corrected by the pace so far. Running sums, since it is
// asked for at every cell of up to 20,000: O(1) a call.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/sweep/sweep.h"

namespace attn {

class Remaining {
 public:
  Remaining(const Plan& plan, int jobs);
  void hold(size_t cell);    // its row was there before
  void finish(size_t cell);  // it was run, by this process
  // `spent_s`: seconds since this process began to run cells.
  double seconds_left(double spent_s) const;

 private:
  std::vector<double> shares_;  // by cell, as they enter the sum; 0 once it is done
  size_t open_ = 0;             // cells to do
  double left_ = 0, done_ = 0;  // sums of their shares, of those finished
};

}  // namespace attn
