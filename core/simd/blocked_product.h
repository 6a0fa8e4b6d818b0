// Matrix products of any size, divided into cache-sized blocks that the kernel of product.h
// multiplies. Goto and van de Geijn 2008 (TOMS 34(3)). 2·rows·cols·depth FLOPs, one thread.
#pragma once

#include <cstdint>

#include "core/simd/product.h"

namespace attn {

// The size of the workspace of blocked_product in numbers: at most 64·kBlockDepth for any sizes.
int64_t blocked_product_reals(int64_t rows, int64_t cols, int64_t depth, Left b);

// Whether products are those of rounded_product.h.
enum class Rounding { none, mixed };

// c(i, j) = Σ_k a(i, k)·b(k, j), added to c if `accumulate`. b(k, j) = b.data[k·b.row + j·b.step],
// where b.step is 1 (a row-major matrix) or b.row is 1 (a transposed one). Rows of c are c_row
// apart.
void blocked_product(int64_t rows, int64_t cols, int64_t depth, Left a, Left b, real* c,
                     int64_t c_row, bool accumulate, real* work,
                     Rounding rounding = Rounding::none);

}  // namespace attn
