// Blocked matrix products; see blocked_product.h. A block of b, at most kBlockDepth × kPanel, is
// packed if b is transposed or its rows are far apart, and is multiplied with up to kBlockRows rows
// of a.
#include "core/simd/blocked_product.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/rounded_product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kBlockDepth = 256;  // 64 KiB of b: the second-level cache, streamed from there
constexpr int64_t kBlockRows = kTileRows * 128;  // of a, 768 KiB with kBlockDepth
constexpr int64_t kFewRows = 24;  // below it, copying a block of b costs more than it gains

// A single row times a transposed matrix is dot products: packing would cost more than they.
bool dots(int64_t rows, Left a, Left b) { return rows == 1 && a.step == 1 && b.row == 1; }

bool in_place(int64_t rows, Left b) { return b.step == 1 && (rows < kFewRows || b.row <= kPanel); }

// b(k, j) for k < depth, j < cols <= kPanel as a right operand.
Right block_of(bool as_it_is, int64_t cols, int64_t depth, Left b, real* work) {
  if (as_it_is) return {b.data, b.row};
  const KernelMark mark(Part::packing);
  if (b.step == 1) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(b.data + k * b.row, cols, work + k * kPanel);
  } else {
    pack_transposed(b.data, cols, depth, b.step, work);
  }
  return {work, kPanel};
}

}  // namespace

int64_t blocked_product_reals(int64_t rows, int64_t cols, int64_t depth, Left b) {
  if (in_place(rows, b) || cols == 0) return 0;
  return kPanel * std::min(depth, kBlockDepth);
}

void blocked_product(int64_t rows, int64_t cols, int64_t depth, Left a, Left b, real* c,
                     int64_t c_row, bool accumulate, real* work, Rounding rounding) {
  if (dots(rows, a, b)) {
    const KernelMark mark(Part::products);
    for (int64_t j = 0; j < cols; ++j) {
      const real dot = row_dot(a.data, b.data + j * b.step, depth);
      c[j] = accumulate ? c[j] + dot : dot;
    }
    return;
  }
  const bool as_it_is = in_place(rows, b);
  for (int64_t i = 0; i < rows; i += kBlockRows) {
    const int64_t m = std::min(kBlockRows, rows - i);
    int64_t k = 0;
    do {  // once for a depth of 0: zeros
      const int64_t d = std::min(kBlockDepth, depth - k);
      const Left left = {a.data + i * a.row + k * a.step, a.row, a.step};
      for (int64_t j = 0; j < cols; j += kPanel) {
        const int64_t n = std::min(kPanel, cols - j);
        const Left block = {b.data + k * b.row + j * b.step, b.row, b.step};
        const Right right = block_of(as_it_is, n, d, block, work);
        real* const to = c + i * c_row + j;
        const bool add = accumulate || k > 0;
        if (rounding == Rounding::mixed)
          add ? add_mixed_product(m, n, d, left, right, to, c_row)
              : mixed_product(m, n, d, left, right, to, c_row);
        else
          add ? add_product(m, n, d, left, right, to, c_row)
              : product(m, n, d, left, right, to, c_row);
      }
      k += kBlockDepth;
    } while (k < depth);
  }
}

}  // namespace attn
