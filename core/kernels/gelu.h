// GELU, x·Φ(x) (Hendrycks and Gimpel 2016, arXiv:1606.08415, exact form), and its slope, as
// straight-line arithmetic that compilers vectorise: about 40 operations. Error: (4 + x²) units in
// the last place of the value itself, so in the far negative tail too, as far as e^(-x²/2) is
// normal (0 beyond); 2 of max(1, |x|).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/kernels/exp.h"
#include "core/real.h"

namespace attn {

// Φ(x) and e^(-x²/2): 0.5·erfc(u/√2)·e^(u²/2) for u = |x| is a polynomial in t = 1/(1 + 0.229·u),
// interpolated at Chebyshev nodes of [0, 14], relative error 6e-8.
struct Normal {
  real below, density;
};
[[maybe_unused]] inline Normal normal_distribution(float x) {
  // e^(-x²/2) = 2^(n + f), |f| <= 1/2; 0 where it would be denormal. One select in place of
  // fast_exp's three, a quarter of the whole.
  constexpr float kRound = 12582912.0f, kScale = -0.72134752f;  // 1.5·2^23: rounds; -log2(e)/2
  constexpr float kMost = 174.6f;
  const float square = x * x, bounded = square > kMost ? kMost : square;
  const float shifted = multiply_add(bounded, kScale, kRound);
  const float f = multiply_add(bounded, kScale, kRound - shifted);
  float q = 0.0001546144472f;  // interpolated at Chebyshev nodes, relative error 2e-8
  q = multiply_add(q, f, 0.001340042818f);
  q = multiply_add(q, f, 0.009618056678f);
  q = multiply_add(q, f, 0.05550327227f);
  q = multiply_add(q, f, 0.2402265092f);
  q = multiply_add(q, f, 0.6931472067f);
  q = multiply_add(q, f, 1.0f);
  const float normal =
      std::bit_cast<float>(std::bit_cast<uint32_t>(q) + (std::bit_cast<uint32_t>(shifted) << 23));
  const float e = square > kMost ? 0.0f : normal;
  const float t = 1.0f / multiply_add(std::fabs(x), 0.229f, 1.0f);
  float p = -0.08156878115f;
  p = multiply_add(p, t, 0.30878614819f);
  p = multiply_add(p, t, -0.31053401677f);
  p = multiply_add(p, t, 0.33323179342f);
  p = multiply_add(p, t, -0.05206085494f);
  p = multiply_add(p, t, 0.12625689480f);
  p = multiply_add(p, t, 0.08373970457f);
  p = multiply_add(p, t, 0.09218835712f);
  p = multiply_add(p, t, -3.926283746e-5f);
  const float tail = p * e;
  return {static_cast<real>(x < 0 ? tail : 1.0f - tail), static_cast<real>(e)};
}
[[maybe_unused]] inline Normal normal_distribution(double x) {
  return {static_cast<real>(0.5 * std::erfc(x * -0.70710678118654752)),
          static_cast<real>(std::exp(-0.5 * x * x))};
}

struct Gelu {
  real value, slope;  // x·Φ(x) and Φ(x) + x·φ(x)
};
inline Gelu gelu_at(real x) {
  constexpr real kDensity = real(0.39894228040143268);  // 1/√(2π)
  const Normal at = normal_distribution(x);
  // Beyond kFar the factors of x are 0 (or 1): it is bounded, since 0 times infinity is NaN.
  constexpr real kFar = 100;
  const real above = x < -kFar ? -kFar : x, near = above > kFar ? kFar : above;
  return {above * at.below, at.below + near * (kDensity * at.density)};
}

}  // namespace attn
