// e^x as straight-line arithmetic that compilers vectorise, with the same bits in every lane and
// position: error below 1.5 ulp. x = n·ln2 + r, |r| <= ln2/2; e^r by a polynomial, 2^n by adding n
// to the exponent field. About 20 operations.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace attn {

// a·b + c, rounded once where the target has the instruction, so the last bit depends on -march.
inline float multiply_add(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double multiply_add(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// 0 below the normal range (so never denormal), infinity above it, NaN for NaN.
inline float fast_exp(float x) {
  constexpr float kLow = -87.33654f, kHigh = 88.72283f, kRound = 12582912.0f;  // 1.5·2^23: rounds
  const float clamped = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  const float shifted = multiply_add(clamped, 1.44269504f, kRound);
  const float n = shifted - kRound;
  // ln2 in two parts, n times the first exact
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, clamped));
  float p = 0.0013941213f;  // interpolated at Chebyshev nodes, relative error 2.5e-9
  p = multiply_add(p, r, 0.0083752102f);
  p = multiply_add(p, r, 0.0416663516f);
  p = multiply_add(p, r, 0.1666641451f);
  p = multiply_add(p, r, 0.5f);
  p = multiply_add(p * r, r, r) + 1.0f;
  const float y =
      std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(shifted) << 23));
  return x < kLow ? 0.0f : (x > kHigh ? std::numeric_limits<float>::infinity() : (x == x ? y : x));
}

inline double fast_exp(double x) {
  constexpr double kLow = -708.39641853226408, kHigh = 709.78271289338397;
  constexpr double kRound = 6755399441055744.0;  // 1.5·2^52
  const double clamped = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  const double shifted = multiply_add(clamped, 1.4426950408889634, kRound);
  const double n = shifted - kRound;
  const double r =
      multiply_add(n, -1.90821492927058770e-10, multiply_add(n, -6.93147180369123816e-01, clamped));
  double p = 1.0 / 6227020800.0;  // Taylor to r^13: relative error 4e-18
  p = multiply_add(p, r, 1.0 / 479001600.0);
  p = multiply_add(p, r, 1.0 / 39916800.0);
  p = multiply_add(p, r, 1.0 / 3628800.0);
  p = multiply_add(p, r, 1.0 / 362880.0);
  p = multiply_add(p, r, 1.0 / 40320.0);
  p = multiply_add(p, r, 1.0 / 5040.0);
  p = multiply_add(p, r, 1.0 / 720.0);
  p = multiply_add(p, r, 1.0 / 120.0);
  p = multiply_add(p, r, 1.0 / 24.0);
  p = multiply_add(p, r, 1.0 / 6.0);
  p = multiply_add(p, r, 0.5);
  p = multiply_add(p * r, r, r) + 1.0;
  const double y =
      std::bit_cast<double>(std::bit_cast<uint64_t>(p) + (std::bit_cast<uint64_t>(shifted) << 52));
  return x < kLow ? 0.0 : (x > kHigh ? std::numeric_limits<double>::infinity() : (x == x ? y : x));
}

}  // namespace attn
