// Products of all rows of one matrix with all rows of another, along long rows: blocks of four by
// four sums stay in registers, so that a number is loaded once for four multiply-adds.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// to[i·y_rows + j] = Σ_c x(i, c)·y(j, c) for c < n; rows are x_row and y_row numbers apart.
void row_products(int64_t x_rows, int64_t y_rows, int64_t n, const real* x, int64_t x_row,
                  const real* y, int64_t y_row, real* to);

}  // namespace attn
