// Elementwise kernels of linear attention: feature maps on projected rows, and products of rows
// with one vector. e^x by range reduction and a polynomial: error below 1.5 ulp, about 14
// operations an element.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// out = elu(x) + 1, computed without cancellation: x + 1 for x > 0, else e^x. NaN stays. `out` may
// be `x`.
void elu_plus_one_row(int64_t size, const real* x, real* out);

// For each row i of x: row_max[i] = the maximum of the row, and x = e^(factor·(x - row_max[i])) in
// place, which is exactly 1 for a finite maximum. factor > 0; NaN stays. Rows are `stride` apart.
void exp_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real factor, real* row_max);

// dots[i] = row i of x · y. Rows are `stride` apart.
void dot_rows(int64_t rows, int64_t cols, const real* x, int64_t stride, const real* y, real* dots);

// Products of pairs. Each row holds 1 + f + f·(f + 1)/2 numbers: 1, then f numbers y, then their
// products y_a·y_b with b >= a, a by a; those of a number with itself are divided by √2. Replaces y
// by scale·y, and writes the rest. Rows are `stride` apart.
void pair_rows(int64_t rows, int64_t f, real scale, real* phi, int64_t stride);

// Their gradients: of such rows `phi` and gradients `grad` of their numbers, both `stride` apart,
// makes the gradients of y before it was scaled, in the first f numbers of a row of `grad`.
void pair_gradient_rows(int64_t rows, int64_t f, real scale, const real* phi, real* grad,
                        int64_t stride);

}  // namespace attn
