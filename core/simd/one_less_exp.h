// 1 - e^-x of a vector. The .cc files of kernels include this header once for each instruction set,
// like Highway's own headers.
#include "core/base/real.h"

#if defined(ATTN_ONE_LESS_EXP_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_ONE_LESS_EXP_H
#undef ATTN_ONE_LESS_EXP_H
#else
#define ATTN_ONE_LESS_EXP_H
#endif

#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// e^-x for x >= 0, and 1 less that: a series where the difference would cancel, so that the error
// is a few units in the last place of the result. NaN stays.
struct OneLessExp {
  Vector left, lost;
  HWY_INLINE explicit OneLessExp(Vector x) : left(exp_anywhere(hn::Neg(x))) {
    constexpr real kFar = static_cast<real>(0.35);
    constexpr int kTerms = kIsDouble ? 14 : 7;  // the next is below half a unit in the last place
    Vector p = all_of(1);                       // 1 - x/2·(1 - x/3·(1 - ..))
    for (int i = kTerms; i >= 2; --i)
      p = hn::NegMulAdd(hn::Mul(x, all_of(real(1) / static_cast<real>(i))), p, all_of(1));
    lost = hn::IfThenElse(hn::Lt(x, all_of(kFar)), hn::Mul(x, p), hn::Sub(all_of(1), left));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#endif  // once for each instruction set
