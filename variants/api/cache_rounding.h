// How far a decoder with a cache of fewer bits may be from exact attention over what the cache
// gives back, in units of the row's largest entry and besides rounding to float32.
#pragma once

#include "core/base/bfloat16.h"
#include "variants/api/cache_type.h"

namespace attn {

// Beside integers, queries and weights may be rounded to 16 bits. A weight times a scale is then
// off by at most 2^-17 of the largest such product of its 256 positions; the errors are
// independent, so that they add up to at most sqrt(256)·2^-17 = 2^-13 of what the position of that
// product adds. Where values cancel, that is more than the row's largest entry: 2^-11 is allowed. A
// query is off by 2^-16 of its largest number, which is less.
//
// Beside values of bfloat16, weights are rounded to it, as in harness/check/bfloat16.cc: 2 units of
// 2^-8. So much hides whether those values are rounded, and whether keys beside them are in
// bfloat16 or int8; keys in int4 are seen. Queries beside keys of bfloat16 are rounded in the
// reference too (ReferenceInputs), so that those keys, and integers beside them, are seen.
constexpr double rounding_beside_cache(CacheType cache) {
  return (keeps_recent(cache) ? 1.0 / (1 << 11) : 0) +
         (values_of(cache) == CacheNumber::bfloat16 ? 2 * kBFloat16Rounding : 0);
}

}  // namespace attn
