// tanh(a + b) of all pairs of two sets of rows, for one multiply-add and a quarter of a division a
// pair: with r = 1 / (1 + e^2a·e^2b), tanh(a + b) = 1 - 2r and its slope is 4·r·(1 - r). The
// exponentials are taken once a row; the 1 cancels in a softmax.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/simd/attention_rows.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {

// |2a| beyond which exponentials are taken of each sum, at some ten times the cost.
inline constexpr real kFar = kIsDouble ? real(600) : real(80);

inline int64_t padded_units(int64_t units) {
  return (units + kUnitMultiple - 1) / kUnitMultiple * kUnitMultiple;
}

inline bool any_far(const real* x, int64_t size) {
  bool far = false;
  for (int64_t i = 0; i < size; ++i) far |= 2 * std::abs(x[i]) > kFar;
  return far;
}

// What a row is kept as: e^2x, or 2x where some row is far; 0 in the units that fill up.
inline void additive_row(const real* x, int64_t units, bool far, real* to) {
  if (far)
    for (int64_t c = 0; c < units; ++c) to[c] = 2 * x[c];
  else
    exp_row(units, x, 2, 0, to);
  std::fill(to + units, to + padded_units(units), real(0));
}

// Rows b [count, units] as a panel [padded units][kPanel].
inline void additive_panel(const real* b, int64_t count, int64_t units, bool far, real* panel) {
  constexpr int64_t kPart = 64;  // units, a multiple of kUnitMultiple
  real part[kPart];
  std::fill_n(panel, padded_units(units) * kPanel, real(0));
  for (int64_t j = 0; j < count; ++j)
    for (int64_t c = 0; c < units; c += kPart) {
      const int64_t some = std::min(kPart, units - c);
      additive_row(b + j * units + c, some, far, part);
      for (int64_t i = 0; i < some; ++i) panel[(c + i) * kPanel + j] = part[i];
    }
}

}  // namespace attn
