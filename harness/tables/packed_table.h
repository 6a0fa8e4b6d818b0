// Packed sequences beside the same ones in a padded batch.
#pragma once

#include <string>

#include "harness/tables/grid.h"
#include "harness/tables/table.h"

namespace attn {

// A line a variant; `grid` holds speed rows of the same packed lengths, mode and threads.
Table packed_table(const std::string& group, const Grid& grid);

}  // namespace attn
