// Matrix products of bfloat16 numbers with sums in `real`, and the packing of their operands. The
// numbers lie in pairs along the depth of the product, as the instruction vdpbf16ps of AVX512_BF16
// reads them: it adds two exact products to each sum. Other instruction sets widen each half of a
// pair. 4·rows·cols·pairs FLOPs.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bfloat16.h"
#include "core/base/real.h"
#include "core/simd/product.h"

namespace attn {

// Two numbers side by side along the depth: the first in the low half.
using BFloat16Pair = uint32_t;
inline int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }
inline BFloat16Pair pair_of(BFloat16 low, BFloat16 high) {
  return static_cast<uint32_t>(low.bits) | static_cast<uint32_t>(high.bits) << 16;
}
// Numbers of `real` that hold so many pairs: workspaces are counted in them.
inline int64_t reals_of_pairs(int64_t pairs) {
  constexpr int64_t kEach = sizeof(real) / sizeof(BFloat16Pair);
  return (pairs + kEach - 1) / kEach;
}

// The left operand: the pair (i, p) is data[i·row + p·step].
struct PairedLeft {
  const BFloat16Pair* data = nullptr;
  int64_t row = 0, step = 1;
};

// The right operand: the pair (p, j) is data[j / kPanel · panel + p·row + j % kPanel]. `next` is as
// in Right; products of AVX512_BF16 do without it.
struct PairedRight {
  const BFloat16Pair* data = nullptr;
  int64_t row = 0, panel = kPanel;
  const void* next = nullptr;
};

// What becomes of the sums: c = factor·sum. With `add`, they are added to c, or to factors[i]·c;
// where a factor is 0, the old c is ignored, even if it is NaN.
struct PairedEnd {
  real factor = 1;
  const real* factors = nullptr;
  bool add = false;

  // Of row i, what c is multiplied with before the sum is added; 0: c is overwritten.
  real kept(int64_t i) const { return factors ? factors[i] : real(add); }
};

// c(i, j) = factor · Σ_p (the two products of a(i, p) and b(p, j)); rows of c are c_row apart.
// Tiny numbers, below 2^-126, may count as 0.
void paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                    real factor, real* c, int64_t c_row);

// c(i, j) = factors[i]·c(i, j) + Σ_p ..; where a factor is 0, the old c is ignored, even if it is
// NaN.
void add_paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                        real* c, int64_t c_row, const real* factors);

// Both of these by what becomes of the sums.
void ended_paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                          PairedEnd end, real* c, int64_t c_row);

// Rounds x [rows, depth], whose rows are `stride` apart, as to_bfloat16() does, and pairs it along
// the rows: a left operand whose rows are `to_row` pairs apart. Of an odd depth, the last number is
// paired with 0. `to` may be x.
void round_rows(const real* x, int64_t rows, int64_t depth, int64_t stride, BFloat16Pair* to,
                int64_t to_row);
// Rounds x [depth, cols], whose rows are `stride` apart, and pairs rows 2p and 2p+1: the right
// operand [pairs_of(depth)], rows `to_row` apart, or with step to_row a left operand.
void round_row_pairs(const real* x, int64_t depth, int64_t cols, int64_t stride, BFloat16Pair* to,
                     int64_t to_row);

// x [rows, depth] as the left operand, [rows, pairs_of(depth)]. Of an odd depth, the last number of
// a row is paired with 0.
void pack_pairs(const BFloat16* x, int64_t rows, int64_t depth, BFloat16Pair* to);
// x [rows, depth] as the right operand xᵀ: panels [pairs_of(depth)][kPanel], the last one padded
// with zeros.
void pack_pairs_transposed(const BFloat16* x, int64_t rows, int64_t depth, BFloat16Pair* panels);
// x [depth, cols] as the right operand, [pairs_of(depth)][cols].
void interleave_rows(const BFloat16* x, int64_t depth, int64_t cols, BFloat16Pair* to);

// round_rows() in place, of `count` numbers, an even count, of each row of x: pair p of row i is
// word p of x + i·stride. Returns them as a left operand.
PairedLeft round_to_pairs(int64_t rows, int64_t count, real* x, int64_t stride);

// The instruction set of these products: "avx512_bf16" where vdpbf16ps computes them, else isa().
std::string bfloat16_isa();

}  // namespace attn
