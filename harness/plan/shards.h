// Which part of a sweep each cell is of, so that parts take about the same time: the longest first,
// to the part with the least so far. The same on every machine, for each takes its part by itself.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

// What stays together in a shard: speed cells that are compared with each other, and of tuned cells
// all choices and seeds, of which one choice will stand for the variant.
std::string unit_of(const Cell& cell);

// The shard of each cell, in the order of `cells`.
std::vector<int> shards_of(const std::vector<Cell>& cells, int shards);

}  // namespace attn
