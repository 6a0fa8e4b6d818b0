// The elementwise part of kernel attention: feature maps on rows that are projected already, and
// the products of rows with one vector. e^x to 1.5 ulp by range reduction and a polynomial, about
// 14 operations an element.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// out = elu(x) + 1 without cancellation: x + 1 above 0, e^x below; NaN stays. out may be x.
void elu_plus_one_row(int64_t size, const real* x, real* out);

// Each of `rows` rows of x, `stride` apart: its largest number goes to tops[i], x becomes
// e^(factor·(x - tops[i])), the largest exactly 1 where it is finite. factor > 0; NaN stays.
void exp_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real factor, real* tops);

// dots[i] = x[i]·y
void dot_rows(int64_t rows, int64_t cols, const real* x, int64_t stride, const real* y, real* dots);

}  // namespace attn
