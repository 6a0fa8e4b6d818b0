// Keys and values as a decoder's cache of fewer bits gives them back, number by number: 32 channels
// of a position share a scale of bfloat16. The newest positions are as they were given.
#pragma once

#include <algorithm>
#include <cmath>

#include "variants/reference/attention.h"

namespace oracle {

// The nearest number of 8 significant bits, ties to even.
inline double in_bfloat16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // x = m·2^exponent, |m| in [1/2, 1)
  const double unit = std::ldexp(1.0, std::max(exponent - 8, -133));
  return std::nearbyint(x / unit) * unit;
}

inline void cached_in_bfloat16(double* row, Index dim) {
  for (Index c = 0; c < dim; ++c) row[c] = in_bfloat16(row[c]);
}

// scale·(an integer from -largest to largest), divided in float as the cache does: a tie is a tie
// there too.
template <int largest>
void cached_in_integers(double* row, Index dim) {
  constexpr Index kShared = 32;
  for (Index first = 0; first < dim; first += kShared) {
    const Index end = std::min(dim, first + kShared);
    float most = 0;
    for (Index c = first; c < end; ++c) most = std::max(most, std::abs(float(row[c])));
    const double scale = in_bfloat16(double(most / float(largest)));
    for (Index c = first; c < end; ++c) {
      double number = scale > 0 ? std::nearbyint(double(float(row[c]) / float(scale))) : 0;
      number = std::min(std::max(number, -double(largest)), double(largest));
      row[c] = scale * number;
    }
  }
}

// x after round(row, dim) of each row but the `recent` last.
template <class Round>
Array cached(Array x, Index recent, const Round& round) {
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len - recent; ++i) round(x.line(b, h, i), x.dim);
  return x;
}

}  // namespace oracle
