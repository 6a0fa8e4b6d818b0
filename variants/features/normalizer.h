// The divisor of linear attention: the sum D of the weights that a query sees, or what replaces it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/real.h"

namespace attn {

enum class Divisor : uint8_t {
  positive,     // features are not negative: nor is D
  either_sign,  // D may vanish or be negative
  floored,      // that too, but its divisor is never below a share of the largest D
};

// Of features that are not negative, smaller sums of weights count as 0: their terms are denormal,
// and a division of gradients by them would overflow.
inline constexpr real kLeastNormalizer = std::numeric_limits<real>::min() * real(1e8);

// Divisor::either_sign: a sum nearer to 0 is replaced by this number with its sign. Sums are
// relative to the largest scale of a visible key, so that a kernel of at most 1 gives sums of about
// the number of keys.
inline constexpr real kLeastSignedNormalizer = real(1e-3);

// Divisor::floored: D is replaced where it is below this share of its bound, the sum of the scales
// of the visible keys, which D reaches where all of them equal the query. For
// 256 trigonometric features it is above the noise of D, a deviation of at most 256^-1/2 = 0.06 of
// the bound; for fewer than 100 it is not, and the side of the floor is by chance.
inline constexpr real kLeastShare = real(0.1);

// D, or the floor with its sign turned, which tells a backward that it divides. NaN stays.
inline real floored_normalizer(real normalizer, real bound) {
  const real floor = kLeastShare * bound;
  return normalizer < floor ? -floor : normalizer;
}

// Whether another number than D divides; if `floored`, of a floored_normalizer().
inline bool is_replaced(real normalizer, Divisor divisor) {
  if (divisor == Divisor::floored) return normalizer < 0;
  return divisor == Divisor::either_sign ? std::abs(normalizer) < kLeastSignedNormalizer
                                         : normalizer < kLeastNormalizer;
}

// What outputs are multiplied by; NaN stays.
inline real inverse_normalizer(real normalizer, Divisor divisor) {
  if (divisor == Divisor::floored) return normalizer == 0 ? real(0) : 1 / std::abs(normalizer);
  if (!is_replaced(normalizer, divisor)) return 1 / normalizer;
  return divisor == Divisor::either_sign ? std::copysign(1 / kLeastSignedNormalizer, normalizer)
                                         : real(0);
}

}  // namespace attn
