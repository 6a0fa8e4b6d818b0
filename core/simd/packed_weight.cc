// Packing takes one pass over the weight. multiply() divides the depth into blocks that fit in the
// second-level cache. See packed_weight.h.
#include "core/simd/packed_weight.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/rounded_product.h"

namespace attn {
namespace {

constexpr int64_t kPieceDepth = 256;  // 64 KiB of a panel

}  // namespace

PackedWeight::PackedWeight(const Tensor& weight, bool transposed)
    : block_(static_cast<size_t>(
                 packed_reals(weight.dim(transposed ? 0 : 1), weight.dim(transposed ? 1 : 0))) *
                 sizeof(real),
             Purpose::workspace),
      depth_(weight.dim(transposed ? 1 : 0)),
      cols_(weight.dim(transposed ? 0 : 1)) {
  const KernelMark mark(Part::packing);
  real* const panels = static_cast<real*>(block_.data());
  panels_ = panels;
  if (transposed) {
    pack_transposed(weight.data(), cols_, depth_, depth_, panels);
    return;
  }
  for (int64_t j = 0; j < cols_; j += kPanel) {
    const int64_t n = std::min(kPanel, cols_ - j);
    for (int64_t k = 0; k < depth_; ++k)
      std::copy_n(weight.data() + k * cols_ + j, n, panels + j * depth_ + k * kPanel);
  }
}

void PackedWeight::multiply(int64_t rows, Left x, Span inner, Span columns, real* c, int64_t c_row,
                            bool accumulate) const {
  int64_t k = 0;
  do {  // once for a depth of 0: zeros
    const int64_t d = std::min(kPieceDepth, inner.size() - k);
    const Left left = {x.data + k * x.step, x.row, x.step};
    for (int64_t j = 0, n = 0; j < columns.size(); j += n) {  // to the end of a panel each time
      const int64_t column = columns.begin + j, within = column % kPanel;
      n = std::min(kPanel - within, columns.size() - j);
      const Right right = {
          panels_ + (column - within) * depth_ + (inner.begin + k) * kPanel + within, kPanel};
      if (accumulate || k > 0)
        add_mixed_product(rows, n, d, left, right, c + j, c_row);
      else
        mixed_product(rows, n, d, left, right, c + j, c_row);
    }
    k += kPieceDepth;
  } while (k < inner.size());
}

}  // namespace attn
