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

#include "core/simd/max_lane.h"
#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

constexpr int64_t kMostGroups = 256;
constexpr int64_t kRanked = 256;  // more scores are partitioned, which takes longer for few

// Moves the lanes that pass, in their order, before the others. GCC 12 copies the table of Compress
// for AVX2 (Highway 1.0.3), of 1 KiB, to the stack at each call: the table here is static.
#if HWY_TARGET == HWY_AVX2 && !defined(ATTN_DOUBLE)
struct Orders {  // for each mask, eight lanes of four bits each
  uint32_t lanes[256];
};
constexpr Orders make_orders() {
  Orders orders{};
  for (uint32_t mask = 0; mask < 256; ++mask)
    for (uint32_t lane = 0, taken = 0; lane < 8; ++lane)
      if (mask >> lane & 1) orders.lanes[mask] |= lane << 4 * taken++;
  return orders;
}
constexpr Orders kOrders = make_orders();

class Packing {
 public:
  HWY_INLINE explicit Packing(hn::Mask<Tag> passes) {
    const Bits bits;
    const auto mask = static_cast<uint32_t>(
        _mm256_movemask_ps(hn::VecFromMask(Tag(), passes).raw));  // a bit a lane
    const auto packed = hn::Set(bits, kOrders.lanes[mask]);
    order_ = hn::And(hn::Shr(packed, hn::ShiftLeft<2>(hn::Iota(bits, 0))), hn::Set(bits, 7));
    count_ = static_cast<int64_t>(hwy::PopCount(mask));
  }
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::TableLookupLanes(x, hn::IndicesFromVec(Tag(), order_));
  }
  HWY_INLINE int64_t count() const { return count_; }

 private:
  hn::Vec<Bits> order_;
  int64_t count_;
};
#else
class Packing {
 public:
  HWY_INLINE explicit Packing(hn::Mask<Tag> passes) : passes_(passes) {}
  HWY_INLINE Vector operator()(Vector x) const { return hn::Compress(x, passes_); }
  HWY_INLINE int64_t count() const { return static_cast<int64_t>(hn::CountTrue(Tag(), passes_)); }

 private:
  hn::Mask<Tag> passes_;
};
#endif

HWY_INLINE int64_t count_above(const real* x, int64_t n, real bound) {
  int64_t count = 0;
  const Vector least = all_of(bound);
  int64_t j = 0;
  for (; j + kVector <= n; j += kVector)
    count += static_cast<int64_t>(hn::CountTrue(Tag(), hn::Gt(hn::LoadU(Tag(), x + j), least)));
  for (; j < n; ++j) count += x[j] > bound;
  return count;
}

HWY_INLINE real smallest_of(const real* x, int64_t vectors) {
  Vector least = hn::LoadU(Tag(), x);
  for (int64_t v = 1; v < vectors; ++v) least = hn::Min(least, hn::LoadU(Tag(), x + v * kVector));
  return -max_lane(Tag(), hn::Neg(least));
}
HWY_INLINE real largest_of(const real* x, int64_t vectors) {
  Vector top = hn::LoadU(Tag(), x);
  for (int64_t v = 1; v < vectors; ++v) top = hn::Max(top, hn::LoadU(Tag(), x + v * kVector));
  return max_lane(Tag(), top);
}

// Between `low`, which at least `most` of n numbers are above, and `high`: a number that `most` to
// `enough` are above, or, where equal ones leave none, at least `most`.
HWY_INLINE real halved(const real* x, int64_t n, int64_t most, int64_t enough, real low,
                       real high) {
  for (int step = 0; step < 24; ++step) {
    const real middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;
    const int64_t above = count_above(x, n, middle);
    (above >= most ? low : high) = middle;
    if (above >= most && above <= enough) break;
  }
  return low;
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
  const real low = smallest_of(largest, groups / kVector),
             high = largest_of(largest, groups / kVector);
  if (!(low > -kInfinity && high < kInfinity)) return kNone;
  return halved(largest, groups, most, most + most / 8, std::nextafter(low, -kInfinity), high);
}

// Appends the scores that pass the bound, NaN as infinity; at most kChunk. Where many vectors hold
// one that passes, a branch would be mispredicted: `kMany` takes none.
template <bool kMany>
HWY_INLINE void filter_as(int64_t n, const real* scores, int64_t first, TopList& list) {
  const Tag d;
  const Vector bound = all_of(list.bound), steps = hn::Iota(d, 0), infinity = all_of(kInfinity);
  int64_t size = list.size, j = 0;
  for (; j + kVector <= n; j += kVector) {
    const Vector x = hn::LoadU(d, scores + j);
    const auto passes = hn::Not(hn::Le(x, bound));
    if (!kMany && hn::AllFalse(d, passes)) continue;
    const Vector places = hn::Add(steps, all_of(static_cast<real>(first + j)));
    const Vector known = hn::IfThenElse(hn::Eq(x, x), x, infinity);
    const Packing packed(passes);
    hn::StoreU(packed(known), d, list.scores + size);
    hn::StoreU(packed(places), d, list.places + size);
    size += packed.count();
  }
  for (; j < n; ++j)
    if (!(scores[j] <= list.bound)) {
      list.scores[size] = std::isnan(scores[j]) ? kInfinity : scores[j];
      list.places[size++] = static_cast<real>(first + j);
    }
  list.size = size;
}

HWY_INLINE void filter(int64_t n, const real* scores, int64_t first, TopList& list) {
  // Of the vectors around place p, about most·kVector/p hold a score that passes.
  if (first < 8 * kVector * list.most)
    filter_as<true>(n, scores, first, list);
  else
    filter_as<false>(n, scores, first, list);
}

// Leaves the scores above `bound`.
HWY_INLINE void keep_above(real bound, TopList& list) {
  const Tag d;
  const Vector least = all_of(bound);
  int64_t kept = 0;
  for (int64_t j = 0; j < list.size; j += kVector) {  // behind the last is -infinity
    const Vector x = hn::LoadU(d, list.scores + j), places = hn::LoadU(d, list.places + j);
    const Packing packed(hn::Gt(x, least));
    hn::StoreU(packed(x), d, list.scores + kept);
    hn::StoreU(packed(places), d, list.places + kept);
    kept += packed.count();
  }
  list.size = kept;
  list.bound = bound;
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
  std::fill_n(list.scores + list.size, kVector, -kInfinity);
  const int64_t vectors = (list.size + kVector - 1) / kVector;
  const real high = largest_of(list.scores, vectors);
  // All scores of a list are above its bound.
  const real low = list.bound > -kInfinity ? list.bound : std::numeric_limits<real>::lowest();
  if (high < kInfinity && count_above(list.scores, list.size, low) >= list.most) {
    const real bound = halved(list.scores, list.size, list.most, list.most, low, high);
    if (count_above(list.scores, list.size, bound) == list.most) return keep_above(bound, list);
  }
  // Scores are equal, or too near to each other, or infinite.
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

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(add_scores);
HWY_EXPORT(finish);

void add_to_top(int64_t n, const real* scores, int64_t first, TopList& list) {
  HWY_DYNAMIC_DISPATCH(add_scores)(n, scores, first, list);
}
void finish_top(TopList& list) { HWY_DYNAMIC_DISPATCH(finish)(list); }

}  // namespace attn
#endif
