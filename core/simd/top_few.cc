// The places of a few largest scores, a pass over the row for each; see top_rows.h. One source,
// compiled by Highway for each instruction set. A short row stays in registers.
#include <algorithm>
#include <limits>

#include "core/simd/targets.h"
#include "core/simd/top_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/top_few.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// The place of the largest of n scores, the first of equal ones; -1: all are -infinity.
HWY_INLINE int64_t largest_place(int64_t n, const real* scores) {
  const Tag d;
  Vector top = all_of(-kInfinity);
  int64_t j = 0;
  for (; j + kVector <= n; j += kVector) top = hn::Max(top, hn::LoadU(d, scores + j));
  real largest = hn::GetLane(hn::MaxOfLanes(d, top));
  for (int64_t i = j; i < n; ++i) largest = std::max(largest, scores[i]);
  if (!(largest > std::numeric_limits<real>::lowest())) return -1;
  const Vector wanted = all_of(largest);
  for (int64_t i = 0; i < j; i += kVector) {
    const auto same = hn::Eq(hn::LoadU(d, scores + i), wanted);
    const intptr_t at = hn::FindFirstTrue(d, same);
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  for (; j < n; ++j)
    if (scores[j] == largest) return j;
  return -1;
}

// Puts the place among `count` ascending ones.
HWY_INLINE void insert_place(int64_t place, int64_t count, int32_t* places) {
  int64_t at = count;
  for (; at > 0 && places[at - 1] > place; --at) places[at] = places[at - 1];
  places[at] = static_cast<int32_t>(place);
}

// The scores of a row that fits into a few registers, behind them -infinity.
constexpr int kRegisters = 4;
struct ShortRow {
  Vector scores[kRegisters];
  HWY_INLINE ShortRow(int64_t n, const real* from) {
    const Vector none = all_of(-kInfinity), infinity = all_of(kInfinity);
    for (int v = 0; v < kRegisters; ++v) {
      const int64_t left = n - v * kVector;
      Vector x = none;
      if (left >= kVector)
        x = hn::LoadU(Tag(), from + v * kVector);
      else if (left > 0)
        x = Partial{left}.keep_or(Partial{left}.load(from + v * kVector), none);
      scores[v] = hn::IfThenElse(hn::Eq(x, x), x, infinity);
    }
  }
  // The place of the largest, which becomes -infinity; -1: all are.
  HWY_INLINE int64_t take_largest() {
    const Tag d;
    const real largest = hn::GetLane(
        hn::MaxOfLanes(d, hn::Max(hn::Max(scores[0], scores[1]), hn::Max(scores[2], scores[3]))));
    if (!(largest > std::numeric_limits<real>::lowest())) return -1;
    const Vector wanted = all_of(largest);
    int64_t place = -1;
    for (int v = kRegisters - 1; v >= 0; --v) {
      const intptr_t at = hn::FindFirstTrue(d, hn::Eq(scores[v], wanted));
      if (at >= 0) place = v * kVector + static_cast<int64_t>(at);
    }
    for (int v = 0; v < kRegisters; ++v) {
      const Vector places = hn::Iota(d, static_cast<real>(v * kVector));
      const auto taken = hn::Eq(places, all_of(static_cast<real>(place)));
      scores[v] = hn::IfThenElse(taken, all_of(-kInfinity), scores[v]);
    }
    return place;
  }
};

// How many places of the largest scores are found: less than `most` where others are -infinity.
HWY_INLINE int64_t few_of_short(int64_t n, const real* scores, int64_t most, int32_t* places) {
  ShortRow row(n, scores);
  for (int64_t count = 0; count < most; ++count) {
    const int64_t place = row.take_largest();
    if (place < 0) return count;
    insert_place(place, count, places);
  }
  return most;
}
HWY_INLINE int64_t few_of_long(int64_t n, real* scores, int64_t most, int32_t* places) {
  for (int64_t j = 0; j < n; ++j) scores[j] = scores[j] == scores[j] ? scores[j] : kInfinity;
  for (int64_t count = 0; count < most; ++count) {
    const int64_t place = largest_place(n, scores);
    if (place < 0) return count;
    scores[place] = -kInfinity;
    insert_place(place, count, places);
  }
  return most;
}

int64_t few(int64_t n, real* scores, int64_t most, int32_t* places) {
  if (n <= most) {
    for (int64_t j = 0; j < n; ++j) places[j] = static_cast<int32_t>(j);
    return n;
  }
  int64_t count = n <= kRegisters * kVector ? few_of_short(n, scores, most, places)
                                            : few_of_long(n, scores, most, places);
  for (int32_t j = 0; count < most; ++j) {  // what is left are scores of -infinity
    int64_t at = std::lower_bound(places, places + count, j) - places;
    if (at < count && places[at] == j) continue;
    std::copy_backward(places + at, places + count, places + count + 1);
    places[at] = j, ++count;
  }
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(few);

int64_t top_few(int64_t n, real* scores, int64_t most, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(few)(n, scores, most, places);
}

}  // namespace attn
#endif
