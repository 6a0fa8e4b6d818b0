// How far a decoder with a cache of fewer bits may be from exact attention over what the cache
// gives back, in units of the row's largest entry and besides rounding to float32.
#pragma once

#include "core/base/bfloat16.h"
#include "variants/api/cache_type.h"

namespace attn {

// Beside integers, queries and weights may be rounded to 16 bits. A weight is then off by at most
// 2^-17 of the largest product of weight and scale of its 256 positions; the errors are
// independent, so that they add up to at most sqrt(256)·2^-17 = 2^-13 of what the position of that
// product adds. Scales differ by less than 4, which makes 2^-11. A query is off by 2^-16 of its
// largest number, which is less. Beside bfloat16, queries and weights may be rounded as in
// harness/check/bfloat16.cc: 2 units of 2^-8.
constexpr double rounding_beside_cache(CacheType cache) {
  const auto holds = [&](CacheNumber number) {
    return keys_of(cache) == number || values_of(cache) == number;
  };
  return (keeps_recent(cache) ? 1.0 / (1 << 11) : 0) +
         (holds(CacheNumber::bfloat16) ? 2 * kBFloat16Rounding : 0);
}

}  // namespace attn
