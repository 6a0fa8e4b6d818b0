// The maximum over the lanes of a vector. The .cc files include this header once for each
// instruction set, like Highway's own headers.
#include <limits>

#include "core/base/real.h"

#if defined(ATTN_MAX_LANE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_MAX_LANE_H
#undef ATTN_MAX_LANE_H
#else
#define ATTN_MAX_LANE_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// Highway's emulation (1.1 and later) starts from the lowest finite number, and returns it if all
// lanes are -infinity.
template <class D>
HWY_INLINE real max_lane(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const real largest = hn::GetLane(hn::MaxOfLanes(d, x));
  if (largest > std::numeric_limits<real>::lowest()) return largest;
  constexpr real kLeast = -std::numeric_limits<real>::infinity();
  return hn::AllTrue(d, hn::Eq(x, hn::Set(d, kLeast))) ? kLeast : largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#endif
