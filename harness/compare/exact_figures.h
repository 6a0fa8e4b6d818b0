// Figures without noise: bytes that are counted, and on fixed inputs the distance from exact
// attention and the reach.
#pragma once

#include "harness/compare/compare.h"

namespace attn {

// Of a pair of memory, fidelity or reach rows. Worse or better where the ratio lies outside of
// [1 / (1 + threshold), 1 + threshold].
Compared compared_exactly(const RowPair& pair, double threshold);

}  // namespace attn
