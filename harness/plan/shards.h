// Which part of a sweep each cell is of, so that parts take about the same time: the longest first,
// to the part with the least so far. The same on every machine, for each takes its part by itself.
#pragma once

#include <vector>

#include "harness/plan/plan.h"

namespace attn {

// The shard of each cell, in the order of `cells`.
std::vector<int> shards_of(const std::vector<Cell>& cells, int shards);

}  // namespace attn
