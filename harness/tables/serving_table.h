// Workloads as they were served: what those who wait for tokens see.
#pragma once

#include <string>

#include "harness/tables/grid.h"
#include "harness/tables/table.h"

namespace attn {

// A line a variant; `grid` holds speed rows of one workload at one number of threads.
Table serving_table(const std::string& group, const Grid& grid);

}  // namespace attn
