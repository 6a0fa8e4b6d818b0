// The logarithm to base 2 by additions, products and quotients alone, so that every platform has
// the same bits; libm's may differ in the last one. About 30 ns.
#pragma once

#include <cmath>

namespace attn {

// Of a normal x > 0, to about one unit in the last place of the larger of 1 and the result.
inline double same_log2(double x) {
  constexpr double kHalfRoot = 0.70710678118654752, kPerNat = 1.4426950408889634;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [1/2, 1), exact
  if (m < kHalfRoot) {
    m *= 2;
    exponent--;
  }
  // ln m = 2·artanh z, a series in z² <= 0.0295: what is left out after z^25 is below 1e-20.
  const double z = (m - 1) / (m + 1), square = z * z;
  double sum = 0;
  for (int power = 25; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent + 2 * z * sum * kPerNat;
}

}  // namespace attn
