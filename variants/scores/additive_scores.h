// tanh(a + b) for all pairs of two sets of rows, with one multiply-add and a quarter of a division
// a pair. With r = 1 / (1 + e^2a·e^2b), tanh(a + b) = 1 - 2r, and its derivative is 4·r·(1 - r).
// The exponentials are computed once for each row; the constant 1 cancels in a softmax.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/simd/attention_rows.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {

// If some |2a| is larger, e^2a could overflow: the exponential of each sum is computed instead,
// which takes about ten times as long.
inline constexpr real kLargeInput = kIsDouble ? real(600) : real(80);

inline int64_t padded_units(int64_t units) {
  return (units + kUnitMultiple - 1) / kUnitMultiple * kUnitMultiple;
}

inline bool any_large(const real* x, int64_t size) {
  bool large = false;
  for (int64_t i = 0; i < size; ++i) large |= 2 * std::abs(x[i]) > kLargeInput;
  return large;
}

// The transformed row: e^2x, or 2x if `large`; the padding units are 0.
inline void additive_row(const real* x, int64_t units, bool large, real* to) {
  if (large)
    for (int64_t c = 0; c < units; ++c) to[c] = 2 * x[c];
  else
    exp_row(units, x, 2, 0, to);
  std::fill(to + units, to + padded_units(units), real(0));
}

// The transformed rows of b [count, units] as a panel [padded units][kPanel].
inline void additive_panel(const real* b, int64_t count, int64_t units, bool large, real* panel) {
  constexpr int64_t kPart = 64;  // units, a multiple of kUnitMultiple
  real part[kPart];
  std::fill_n(panel, padded_units(units) * kPanel, real(0));
  for (int64_t j = 0; j < count; ++j)
    for (int64_t c = 0; c < units; c += kPart) {
      const int64_t some = std::min(kPart, units - c);
      additive_row(b + j * units + c, some, large, part);
      for (int64_t i = 0; i < some; ++i) panel[(c + i) * kPanel + j] = part[i];
    }
}

}  // namespace attn
