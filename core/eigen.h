// Eigen views of tensors. Included by .cc files that multiply, never by headers: Eigen costs
// seconds a file.
#pragma once

#include <Eigen/Core>

#include "core/tensor.h"

namespace attn {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
using ConstMatrixMap = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using RowMap = Eigen::Map<Eigen::Array<real, 1, Eigen::Dynamic>>;
using ConstRowMap = Eigen::Map<const Eigen::Array<real, 1, Eigen::Dynamic>>;

// rows × cols at `data`, rows `stride` apart (0: dense).
inline MatrixMap map(real* data, int64_t rows, int64_t cols, int64_t stride = 0) {
  return {data, rows, cols, Eigen::OuterStride<>(stride ? stride : cols)};
}
inline ConstMatrixMap map(const real* data, int64_t rows, int64_t cols, int64_t stride = 0) {
  return {data, rows, cols, Eigen::OuterStride<>(stride ? stride : cols)};
}
// The i-th of the matrices formed by the last two dimensions.
inline MatrixMap matrix(const Tensor& t, int64_t i = 0) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  return map(t.data() + i * rows * cols, rows, cols);
}

}  // namespace attn
