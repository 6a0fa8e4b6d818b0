// A matrix transposed into another: squares of registers, 16 rows at a time where the instruction
// set has them. Bound by shuffles, about a quarter of a cycle a number.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// to(j, i) = x(i, j) for i < rows, j < cols; rows of x are x_row apart, those of `to` are to_row.
void transpose(int64_t rows, int64_t cols, const real* x, int64_t x_row, real* to, int64_t to_row);

}  // namespace attn
