// Sums over rows that do not depend on the number of threads: rows are shared out in pieces, each
// with sums of its own, which are added in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

inline constexpr int64_t kPieceRows = 256;

inline int64_t pieces_of(int64_t rows) {
  return std::max<int64_t>(1, (rows + kPieceRows - 1) / kPieceRows);
}

// total[j % size] += the sums [pieces, stride] of all pieces, from `offset` on, of `count` numbers.
inline void add_pieces(const Tensor& sums, int64_t offset, int64_t count, const Tensor& total) {
  const int64_t size = total.size(), stride = sums.dim(1);
  for (int64_t piece = 0; piece < sums.dim(0); ++piece)
    for (int64_t j = 0; j < count; ++j) total[j % size] += sums[piece * stride + offset + j];
}

}  // namespace attn
