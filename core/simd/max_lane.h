// The largest number of a vector. Included by .cc files once for each instruction set, as Highway's
// own headers are.
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

// Highway's emulation (1.1 and later) begins at the lowest finite number, which is what it gives
// where all are -infinity.
template <class D>
HWY_INLINE real max_lane(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const real top = hn::GetLane(hn::MaxOfLanes(d, x));
  if (top > std::numeric_limits<real>::lowest()) return top;
  constexpr real kLeast = -std::numeric_limits<real>::infinity();
  return hn::AllTrue(d, hn::Eq(x, hn::Set(d, kLeast))) ? kLeast : top;
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#endif
