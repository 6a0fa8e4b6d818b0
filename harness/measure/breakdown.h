// Where the time of a workload's passes goes: marks (core/base/marks.h) on in passes of their own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// Passes with marks on, each beside one with marks off, which shows what marks cost.
struct MarkedPasses {
  std::vector<double> marked_s, plain_s;  // seconds of a pass, one of each a pair
  std::map<std::string, double> part_s;   // seconds of all threads, in all marked passes, by part
  int64_t passes = 0, marks = 0;          // marked passes, and marks in them

  bool empty() const { return passes == 0; }
};
MarkedPasses& operator+=(MarkedPasses& all, const MarkedPasses& more);

// After one pass of each kind that is not counted. Takes about a fifth of a second, or four passes
// if that is longer.
MarkedPasses measure_parts(Workload& workload);

}  // namespace attn
