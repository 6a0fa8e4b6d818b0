// What `attnbench noise` prints: the noise of this machine as a table, and as flat objects for json
// and csv.
#pragma once

#include <vector>

#include "harness/compare/noise.h"
#include "harness/tables/table.h"

namespace attn {

// A line for each mode, number of threads and length, and one of all pairs; its notes say whether
// anything differed, whether the intervals hold what they claim, and what was left out.
Table noise_table(const NoiseReport& report);
// The same lines; "mode", "threads" and "length" are null in the last, which is of all pairs.
std::vector<Json> noise_lines(const NoiseReport& report);

}  // namespace attn
