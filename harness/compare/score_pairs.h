// Pairs of accuracy cells: all seeds of a variant on a task are one pair. Private to
// harness/compare.
#pragma once

#include <vector>

#include "harness/compare/tested.h"

namespace attn {

std::vector<Tested> compared_scores(const std::vector<RowPair>& pairs, double threshold);

}  // namespace attn
