// One pass of a fast Fourier transform in Stockham's order (Cochran et al. 1967, Proc. IEEE
// 55(10)): `radix` numbers are combined at a time, the results stand in order, real and imaginary
// parts are arrays of their own. About 5·log2(radix) FLOPs a number, memory O(1).
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// A pass over `parts`·radix groups of `stride` numbers. With w the root e^(-2πi/radix), for p <
// parts, k < radix, q < stride: to[(radix·p + k)·stride + q] = turn · Σ_j w^(j·k) from[(p +
// parts·j)·stride + q]. The turn is at turns[radix·p + k], or, where `is_each`, one of each number:
// at the index of `to`.
struct FourierPass {
  int radix;  // 2, 3, 4, 5 or 8
  int64_t parts, stride;
  bool is_each;
  const real *turn_re, *turn_im;
};
void fourier_pass(const FourierPass& pass, const real* from_re, const real* from_im, real* to_re,
                  real* to_im);

// n complex numbers, one after the other, as two arrays, and back.
void split_complex(int64_t n, const real* from, real* re, real* im);
void merge_complex(int64_t n, const real* re, const real* im, real* to);

}  // namespace attn
