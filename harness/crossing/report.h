// Crossings as tables and as flat objects for json and csv.
#pragma once

#include <string>
#include <vector>

#include "harness/crossing/contests.h"
#include "harness/tables/table.h"

namespace attn {

// A table for each measure and set of axes; a line for each crossing, or for a pair without one.
std::vector<Table> crossing_tables(const std::vector<Contest>& contests,
                                   const std::vector<Standing>& found);
std::vector<Json> crossing_lines(const std::vector<Contest>& contests,
                                 const std::vector<Standing>& found);

// Cells of the contests that have a row, and those of a grid of the same precision: all lengths
// in steps of 10 %, between which a crossing lies within ±5 %.
struct CellCounts {
  size_t measured = 0, of_grid = 0;
};
CellCounts cell_counts(const std::vector<Contest>& contests, const std::vector<Standing>& found);

}  // namespace attn
