// The register-tiled matrix product that every hot loop stands on: six rows by up to four vectors
// of sums stay in registers while the depth runs; after Goto and van de Geijn 2008 (TOMS 34(3)).
// 2·rows·cols·depth FLOPs. One source for all instruction sets, chosen at run time (isa.h).
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

inline constexpr int64_t kTileRows = 6;  // rows of a and c that are in registers at once
inline constexpr int64_t kPanel = 64;    // columns of a packed panel, whatever the instruction set

// a(i, k) = data[i·row + k·step]: a row-major matrix is {x, its row stride, 1}, its transpose
// {x, 1, its row stride}. Elements are broadcast one by one, so either is as fast.
struct Left {
  const real* data = nullptr;
  int64_t row = 0, step = 1;
};

// b(k, j) = data[j / kPanel · panel + k·row + j % kPanel]: a row-major matrix is {x, its row
// stride}, read in place; what pack_transposed wrote is {panels, kPanel, depth·kPanel}.
struct Right {
  const real* data = nullptr;
  int64_t row = 0, panel = kPanel;
};

// c(i, j) = Σ_k a(i, k)·b(k, j) for i < rows, j < cols, k < depth; rows of c are c_row apart. No
// argument needs to be aligned; nothing beyond the named elements is read or written. c must not
// overlap a or b. A depth of 0 gives zeros.
void product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row);

// The same added to factors[i]·c(i, j); without factors, to c(i, j). Where a factor is 0, what c
// held does not matter (NaN too).
void add_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row,
                 const real* factors = nullptr);

// x [rows, depth], rows x_row apart, as the right operand xᵀ [depth, rows]: panels of kPanel
// columns, the last one filled up with zeros.
void pack_transposed(const real* x, int64_t rows, int64_t depth, int64_t x_row, real* panels);
inline int64_t packed_reals(int64_t rows, int64_t depth) {
  return (rows + kPanel - 1) / kPanel * kPanel * depth;
}
inline Right packed(const real* panels, int64_t depth) { return {panels, kPanel, depth * kPanel}; }

}  // namespace attn
