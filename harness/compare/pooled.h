// Runs of one sweep on one machine by one program, as one run whose visits are those runs: what
// scripts/regress makes of its rounds.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/row_pairs.h"

namespace attn {

struct PooledRows {
  std::vector<Json> lines;  // the first run's line, then a row for each cell
  size_t cells = 0;
};

// A time becomes one row with the samples of all runs, each run a visit: its interval is that
// between runs. So does the padded pass beside packed sequences; where a run has no samples of it,
// the row has none, and no ratio. Every other figure is that of the first run. A cell that failed
// in one run is that failure. A time is noisy for a reason that more than half of the runs have,
// and where the witness fell in one. Error where the runs are of two machines, builds or commits,
// where a run lacks a cell of the first, and where other figures than times differ.
PooledRows pooled(const std::vector<RowsFile>& runs);

}  // namespace attn
