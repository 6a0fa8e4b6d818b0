// A weight matrix, packed once into panels, as the right operand of many products. Memory: a copy
// of the weight, counted as workspace.
#pragma once

#include <cstdint>

#include "core/base/memory.h"
#include "core/base/span.h"
#include "core/simd/product.h"
#include "core/tensor/tensor.h"

namespace attn {

class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const Tensor& weight,
               bool transposed);  // weight [depth, cols]; transposed: [cols, depth]
  int64_t depth() const { return depth_; }
  int64_t cols() const { return cols_; }
  // c = x · weight[inner, columns], added to c if `accumulate`. x [rows, inner.size()], c [rows,
  // columns.size()]; rows of c are c_row apart.
  void multiply(int64_t rows, Left x, Span inner, Span columns, real* c, int64_t c_row,
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
