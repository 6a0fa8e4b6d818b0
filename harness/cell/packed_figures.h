// What a speed row says of packed sequences beside the same ones padded: of a cell, and of runs
// that are joined.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cell/key.h"
#include "harness/cell/metrics.h"

namespace attn {

// Those of all sequences of the axis `packed`.
int64_t packed_positions(const Axes& axes);

// `packed` is the summary of `packed_s`. Sample i of `padded_s`, the padded pass, and sample i of
// `packed_s` were taken in turn; `visits` and `seed` as of summarize(). An empty `padded_s`: there
// is no time of a padded pass, and nothing that follows from one.
PackedFigures packed_figures(const Axes& axes, const Summary& packed,
                             const std::vector<double>& packed_s,
                             const std::vector<double>& padded_s,
                             const std::vector<int64_t>& visits, uint64_t seed);

}  // namespace attn
