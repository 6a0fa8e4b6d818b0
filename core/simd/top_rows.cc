// One source, compiled by Highway for each instruction set; see top_rows.h. The first bound is that
// of maxima over 2·most groups or more: as many groups as scores are kept have a score above it.
#include "core/simd/top_rows.h"

#include <cmath>

#include "core/base/marks.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/top_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

constexpr int64_t kMostGroups = 256;
constexpr int64_t kRanked = 256;  // more scores are partitioned, which takes longer for few

HWY_INLINE int64_t count_above(const real* x, int64_t n, real bound) {
  int64_t count = 0;
  const Vector least = all_of(bound);
  int64_t j = 0;
  for (; j + kVector <= n; j += kVector)
    count += static_cast<int64_t>(hn::CountTrue(Tag(), hn::Gt(hn::LoadU(Tag(), x + j), least)));
  for (; j < n; ++j) count += x[j] > bound;
  return count;
}

// A bound below at least `most` of the scores; NaN: none is known.
HWY_INLINE real first_bound(int64_t n, const real* scores, int64_t most) {
  constexpr real kNone = std::numeric_limits<real>::quiet_NaN();
  const int64_t groups = (2 * most + kVector - 1) / kVector * kVector;
  if (groups > kMostGroups || n < 2 * groups) return kNone;
  HWY_ALIGN real largest[kMostGroups];
  const int64_t rounds = n / groups;
  for (int64_t g = 0; g < groups; g += kVector) {
    Vector top = hn::LoadU(Tag(), scores + g);
    for (int64_t r = 1; r < rounds; ++r)
      top = hn::Max(top, hn::LoadU(Tag(), scores + r * groups + g));
    hn::Store(top, Tag(), largest + g);
  }
  real low = largest[0], high = largest[0];
  for (int64_t g = 1; g < groups; ++g)
    low = std::min(low, largest[g]), high = std::max(high, largest[g]);
  if (!(low > -kInfinity && high < kInfinity)) return kNone;
  low = std::nextafter(low, -kInfinity);
  for (int step = 0; step < 16; ++step) {
    const real middle = low + (high - low) / 2;
    const int64_t above = count_above(largest, groups, middle);
    (above >= most ? low : high) = middle;
    if (above >= most && above <= most + most / 8) break;
  }
  return low;
}

// Appends the scores that pass the bound; at most kChunk.
HWY_INLINE void filter(int64_t n, const real* scores, int64_t first, TopList& list) {
  const Tag d;
  const Vector bound = all_of(list.bound), steps = hn::Iota(d, 0);
  int64_t size = list.size, j = 0;
  for (; j + kVector <= n; j += kVector) {
    const Vector x = hn::LoadU(d, scores + j);
    const auto passes = hn::Not(hn::Le(x, bound));
    if (hn::AllFalse(d, passes)) continue;
    const Vector places = hn::Add(steps, all_of(static_cast<real>(first + j)));
    hn::StoreU(hn::Compress(x, passes), d, list.scores + size);
    hn::StoreU(hn::Compress(places, passes), d, list.places + size);
    size += static_cast<int64_t>(hn::CountTrue(d, passes));
  }
  for (; j < n; ++j)
    if (!(scores[j] <= list.bound)) {
      list.scores[size] = scores[j];
      list.places[size++] = static_cast<real>(first + j);
    }
  list.size = size;
}

// The most-th largest of the list, which has more.
HWY_INLINE real last_taken(const TopList& list) {
  const int64_t n = list.size;
  real* const spare = list.spare;
  if (n > kRanked) {
    std::copy_n(list.scores, n, spare);
    std::nth_element(spare, spare + list.most - 1, spare + n, [](real a, real b) { return a > b; });
    return spare[list.most - 1];
  }
  // Of each score, how many are larger.
  const Vector one = all_of(1);
  for (int64_t j = 0; j < n; j += 4 * kVector) {
    Vector mine[4], larger[4];
    for (int v = 0; v < 4; ++v) {
      const int64_t at = std::min(j + v * kVector, n);  // there is room behind the scores
      mine[v] = hn::LoadU(Tag(), list.scores + at);
      larger[v] = hn::Zero(Tag());
    }
    for (int64_t i = 0; i < n; ++i) {
      const Vector other = all_of(list.scores[i]);
      for (int v = 0; v < 4; ++v)
        larger[v] = hn::Add(larger[v], hn::IfThenElseZero(hn::Gt(other, mine[v]), one));
    }
    for (int v = 0; v < 4 && j + v * kVector < n; ++v)
      hn::StoreU(larger[v], Tag(), spare + j + v * kVector);
  }
  real least = kInfinity;
  for (int64_t i = 0; i < n; ++i)
    least = std::min(least, spare[i] < static_cast<real>(list.most) ? list.scores[i] : kInfinity);
  return least;
}

void prune(TopList& list) {
  if (list.size <= list.most) return;
  for (int64_t i = 0; i < list.size; ++i)
    list.scores[i] = std::isnan(list.scores[i]) ? kInfinity : list.scores[i];
  std::fill_n(list.scores + list.size, kVector, -kInfinity);
  const real least = last_taken(list);
  int64_t equal = list.most - count_above(list.scores, list.size, least), kept = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const real score = list.scores[i];
    const bool same = score == least, is_taken = score > least || (same && equal > 0);
    list.scores[kept] = score;
    list.places[kept] = list.places[i];
    kept += is_taken;
    equal -= same;
  }
  list.size = kept;
  list.bound = least;
}

void add_scores(int64_t n, const real* scores, int64_t first, TopList& list) {
  const int64_t pruned_at = TopList::pruned_at(list.most);
  int64_t j = 0;
  if (list.size == 0 && std::isnan(list.bound)) {
    list.bound = first_bound(n, scores, list.most);
    if (!std::isnan(list.bound)) {
      for (; j < n; j += TopList::kChunk) {
        filter(std::min(TopList::kChunk, n - j), scores + j, first + j, list);
        if (list.size >= pruned_at) prune(list);
      }
      if (list.size >= list.most) return;  // else NaN among the maxima has hidden some
      list.size = 0;
      list.bound = std::numeric_limits<real>::quiet_NaN();
    }
  }
  for (j = 0; j < n; j += TopList::kChunk) {
    filter(std::min(TopList::kChunk, n - j), scores + j, first + j, list);
    if (list.size >= pruned_at) prune(list);
  }
}

void finish(TopList& list) { prune(list); }

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

int64_t few(int64_t n, real* scores, int64_t most, int32_t* places) {
  if (n <= most) {
    for (int64_t j = 0; j < n; ++j) places[j] = static_cast<int32_t>(j);
    return n;
  }
  bool has_nan = false;
  for (int64_t j = 0; j < n; ++j) has_nan |= scores[j] != scores[j];
  if (has_nan)
    for (int64_t j = 0; j < n; ++j) scores[j] = scores[j] == scores[j] ? scores[j] : kInfinity;
  int64_t count = 0;
  for (; count < most; ++count) {
    int64_t place = largest_place(n, scores);
    if (place < 0) break;
    scores[place] = -kInfinity;
    int64_t at = count;
    for (; at > 0 && places[at - 1] > place; --at) places[at] = places[at - 1];
    places[at] = static_cast<int32_t>(place);
  }
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
HWY_EXPORT(add_scores);
HWY_EXPORT(finish);
HWY_EXPORT(few);

void add_to_top(int64_t n, const real* scores, int64_t first, TopList& list) {
  HWY_DYNAMIC_DISPATCH(add_scores)(n, scores, first, list);
}
void finish_top(TopList& list) { HWY_DYNAMIC_DISPATCH(finish)(list); }
int64_t top_few(int64_t n, real* scores, int64_t most, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(few)(n, scores, most, places);
}

}  // namespace attn
#endif
