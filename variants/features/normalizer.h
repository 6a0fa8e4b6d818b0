// The divisor of linear attention: the sum of the weights that a query sees.
#pragma once

#include <cmath>
#include <limits>

#include "core/base/real.h"

namespace attn {

// Of features that are not negative, smaller sums of weights count as 0: their terms are denormal,
// and a division of gradients by them would overflow.
inline constexpr real kLeastNormalizer = std::numeric_limits<real>::min() * real(1e8);

// Of signed features, sums may vanish or be negative: a sum nearer to 0 is replaced by this number
// with its sign. Sums are relative to the largest scale of a visible key, so that a kernel of at
// most 1 gives sums of about the number of keys.
inline constexpr real kLeastSignedNormalizer = real(1e-3);

inline bool is_replaced(real normalizer, bool is_signed) {
  return is_signed ? std::abs(normalizer) < kLeastSignedNormalizer : normalizer < kLeastNormalizer;
}

// What outputs are multiplied by; NaN stays.
inline real inverse_normalizer(real normalizer, bool is_signed) {
  if (!is_replaced(normalizer, is_signed)) return 1 / normalizer;
  return is_signed ? std::copysign(1 / kLeastSignedNormalizer, normalizer) : real(0);
}

}  // namespace attn
