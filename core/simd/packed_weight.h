// A weight matrix packed once into panels, then multiplied from the right by tile after tile of
// rows, whole or by blocks of its rows and columns. Memory: a copy of the weight, as workspace.
#pragma once

#include <cstdint>

#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/tensor/tensor.h"

namespace attn {

struct Interval {  // [begin, begin + size)
  int64_t begin = 0, size = 0;
};

class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const Tensor& weight, bool transposed);  // weight [n, m], as it is or transposed
  int64_t depth() const { return depth_; }
  int64_t cols() const { return cols_; }
  // c [rows, columns.size] = or += x · weight[inner, columns]. x(i, k) for k in [0, inner.size).
  void multiply(int64_t rows, Left x, Interval inner, Interval columns, real* c, int64_t c_row,
                bool accumulate) const;
  void multiply(int64_t rows, Left x, real* c, int64_t c_row, bool accumulate) const {
    multiply(rows, x, {0, depth_}, {0, cols_}, c, c_row, accumulate);
  }

 private:
  Block block_;
  const real* panels_ = nullptr;
  int64_t depth_ = 0, cols_ = 0;
};

}  // namespace attn
