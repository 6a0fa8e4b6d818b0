// The register-tiled matrix product of all kernels: a tile of six rows by up to four vectors of
// sums, or of one row by eight, stays in registers during the loop over depth. Goto and van de
// Geijn 2008 (TOMS 34(3)). 2·rows·cols·depth FLOPs. The instruction set is selected at run time
// (isa.h).
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

inline constexpr int64_t kTileRows = 6;  // rows of a tile
inline constexpr int64_t kPanel = 64;    // columns of a packed panel on every instruction set

// The left operand: a(i, k) = data[i·row + k·step]. A row-major matrix x is {x, row stride, 1}, its
// transpose {x, 1, row stride}. Both are equally fast, since elements are broadcast one by one.
struct Left {
  const real* data = nullptr;
  int64_t row = 0, step = 1;
};

// The right operand: b(k, j) = data[j / kPanel · panel + k·row + j % kPanel]. A row-major matrix x,
// read in place, is {x, row stride}; panels of pack_transposed are {panels, kPanel, depth·kPanel}.
// `next`, if any, is what the caller reads next: as many bytes as b has are fetched from there into
// the cache meanwhile, in order. This pays where b is read once, from memory.
struct Right {
  const real* data = nullptr;
  int64_t row = 0, panel = kPanel;
  const void* next = nullptr;
};

// c(i, j) = Σ_k a(i, k)·b(k, j) for i < rows, j < cols, k < depth; rows of c are c_row apart. The
// arguments need no alignment. No other elements are read or written. c must not overlap a or b. A
// depth of 0 gives zeros.
void product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row);

// c(i, j) = factors[i]·c(i, j) + Σ_k a(i, k)·b(k, j); without factors, they are 1. Where a factor
// is 0, the old c is ignored, even if it is NaN.
void add_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row,
                 const real* factors = nullptr);

// The same with the old numbers in `from`, whose rows are c_row apart too: c(i, j) =
// factors[i]·from(i, j) + Σ_k a(i, k)·b(k, j). `from` may be c, and overlaps it nowhere else.
void add_product_to(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, const real* from,
                    real* c, int64_t c_row, const real* factors = nullptr);

// Packs x [rows, depth], whose rows are x_row apart, as the right operand xᵀ [depth, rows]: panels
// of kPanel columns. The last panel is padded with zeros.
void pack_transposed(const real* x, int64_t rows, int64_t depth, int64_t x_row, real* panels);
inline int64_t packed_reals(int64_t rows, int64_t depth) {
  return (rows + kPanel - 1) / kPanel * kPanel * depth;
}
inline Right packed(const real* panels, int64_t depth) { return {panels, kPanel, depth * kPanel}; }

}  // namespace attn
