// One pass of a fast Fourier transform in Stockham's order (Cochran et al. 1967, Proc. IEEE
// 55(10)): `radix` numbers are combined at a time, the results stand in order. Real and imaginary
// parts are arrays of their own but where a pass reads or writes complex numbers. About
// 5·log2(radix) FLOPs a number, memory O(1).
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

// Where a pass reads or writes: two arrays, or complex numbers one after the other at `re`, where
// `im` is null. `is_swapped`, for complex numbers alone: the real part is taken as the imaginary
// one and the other way round. A backward transform is a forward one between two such swaps.
template <class Real>
struct FourierNumbers {
  Real *re, *im;
  bool is_swapped = false;
};
// A pass of radix 4 with a turn a group may read complex numbers, and one of any radix with a turn
// a group may write them; none does both.
void fourier_pass(const FourierPass& pass, FourierNumbers<const real> from,
                  FourierNumbers<real> to);
// The radix up to which powers of two are fastest: 4 or 8.
int most_fourier_radix();

}  // namespace attn
