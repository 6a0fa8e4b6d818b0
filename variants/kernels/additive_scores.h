// tanh(a + b) of all pairs of two sets of rows, for one multiply-add and a quarter of a division a
// pair: with r = 1 / (1 + e^2a·e^2b), tanh(a + b) = 1 - 2r and its slope is 4·r·(1 - r). The
// exponentials are taken once a row; the 1 cancels in a softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/kernels/exp.h"
#include "core/kernels/product.h"
#include "core/kernels/rows.h"

namespace attn {

inline constexpr int64_t kUnitMultiple = 4;  // units that share a division
// Above this r is below half a rounding of 1; the product of four still is a number.
inline constexpr real kMostSum = kIsDouble ? real(1152921504606846976.0) : real(1073741824.0);
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
inline void additive_row(const real* x, int64_t units, bool far, real* to, int64_t step = 1) {
  for (int64_t c = 0; c < units; ++c) to[c * step] = far ? 2 * x[c] : fast_exp(2 * x[c]);
  for (int64_t c = units; c < padded_units(units); ++c) to[c * step] = 0;
}

// Rows b [count, units] as a panel [padded units][kPanel].
inline void additive_panel(const real* b, int64_t count, int64_t units, bool far, real* panel) {
  std::fill_n(panel, padded_units(units) * kPanel, real(0));
  for (int64_t j = 0; j < count; ++j) additive_row(b + j * units, units, far, panel + j, kPanel);
}

// sum = 1 + e^(2a + 2b) of one unit and the keys of one vector, at most kMostSum; NaN stays. Not
// returned: a vector's way back differs between instruction sets.
template <bool kIsFar>
inline void additive_sum(real a, const real* b, Lanes& sum) {
  Lanes keys;
  std::memcpy(&keys, b, sizeof keys);
  if constexpr (kIsFar) {
    for (int64_t l = 0; l < kLanes; ++l) sum[l] = 1 + fast_exp(a + keys[l]);
  } else {
    sum = a * keys + 1;
  }
  sum = sum > kMostSum ? Lanes{} + kMostSum : sum;
}

// out[j] = Σ_c weight[c] / (1 + e^(2a_c + 2b_jc)) for the keys of a panel.
template <bool kIsFar>
void additive_scores(const real* a, const real* weight, const real* panel, int64_t padded,
                     real* out) {
  constexpr int64_t kVectors = kPanel / kLanes;
  Lanes total[kVectors] = {};
  for (int64_t c = 0; c < padded; c += kUnitMultiple)
    for (int64_t g = 0; g < kVectors; ++g) {
      const real* const b = panel + c * kPanel + g * kLanes;
      Lanes d0, d1, d2, d3;
      additive_sum<kIsFar>(a[c], b, d0);
      additive_sum<kIsFar>(a[c + 1], b + kPanel, d1);
      additive_sum<kIsFar>(a[c + 2], b + 2 * kPanel, d2);
      additive_sum<kIsFar>(a[c + 3], b + 3 * kPanel, d3);
      const Lanes n01 = weight[c] * d1 + weight[c + 1] * d0, d01 = d0 * d1;
      const Lanes n23 = weight[c + 2] * d3 + weight[c + 3] * d2, d23 = d2 * d3;
      total[g] += (n01 * d23 + n23 * d01) / (d01 * d23);
    }
  std::memcpy(out, total, sizeof total);
}

}  // namespace attn
