// Fitted growth as tables and as flat objects for json and csv.
#pragma once

#include <vector>

#include "harness/growth/growth.h"
#include "harness/tables/table.h"

namespace attn {

// A table for each measure and set of axes.
std::vector<Table> growth_tables(const std::vector<Growth>& growths,
                                 const std::optional<int64_t>& at);
std::vector<Json> growth_lines(const std::vector<Growth>& growths,
                               const std::optional<int64_t>& at);

}  // namespace attn
