// The noise floor of a machine: the smallest difference of two times that the machine can tell from
// none, as `attnbench noise` measured it. harness/compare/noise.h has the formula.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cell/names.h"

namespace attn {

// Of one mode, number of threads and length.
struct FloorAt {
  Mode mode = Mode::forward;
  int64_t threads = 1, length = 0;
  double share = 0;                 // 0.013: times that differ by 1.3 %
  int64_t cells = 0;                // measured twice to find it
  std::string measured_at, commit;  // UTC; of the program, "" where unknown
};
using NoiseFloor = std::vector<FloorAt>;  // empty: none was measured

}  // namespace attn
