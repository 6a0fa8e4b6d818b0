// Rows of feature maps that make two numbers of each projection, in place: cols projections become
// 2·cols features. About 25 operations a pair.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// For each row i of x, with y_j = factors[i]·x_j for j < cols: x_j = amplitude·sin(y_j) and
// x_{cols + j} = amplitude·cos(y_j). Error below 2 units in the last place of the amplitude, and of
// y_j; NaN stays. Rows are `stride` apart.
void sin_cos_rows(int64_t rows, int64_t cols, real* x, int64_t stride, const real* factors,
                  real amplitude);

// For each row of x: softmax(x) in its first `cols` numbers, softmax(-x) in the next. Neither
// overflows.
void softmax_pair_rows(int64_t rows, int64_t cols, real* x, int64_t stride);

}  // namespace attn
