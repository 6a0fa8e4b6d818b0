// Products of mixed precision: operands are rounded to bfloat16, sums are in `real`, as in
// Micikevicius et al. 2018, arXiv:1710.03740, with the number type of Kalamkar et al. 2019,
// arXiv:1905.12322. 2·rows·cols·depth FLOPs, and a pass over both operands to round and pair them.
#pragma once

#include <cstdint>

#include "core/simd/product.h"

namespace attn {

// While an object of this class exists, the products below round their operands, on all threads of
// the process. Without one they are those of product.h.
class RoundedProducts {
 public:
  RoundedProducts();
  ~RoundedProducts();
  RoundedProducts(const RoundedProducts&) = delete;
  RoundedProducts& operator=(const RoundedProducts&) = delete;
  static bool active();
};

// As product() and add_product(). Small products stay in `real`: rounding would cost more than it
// saves. Of each operand, rows or columns must be contiguous.
void mixed_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c,
                   int64_t c_row);
void add_mixed_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c,
                       int64_t c_row, const real* factors = nullptr);

}  // namespace attn
