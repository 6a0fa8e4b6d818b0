// Figures without noise: bytes that are counted, and the distance from exact attention on fixed
// inputs.
#pragma once

#include "harness/compare/compare.h"

namespace attn {

// Of a pair of memory or fidelity rows. Worse or better where the ratio lies outside of
// [1 / (1 + threshold), 1 + threshold].
Compared compared_exactly(const RowPair& pair, double threshold);

}  // namespace attn
