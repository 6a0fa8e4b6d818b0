// One source, compiled by Highway for each instruction set; see channel_decay.h.
#include "core/simd/channel_decay.h"

#include <algorithm>

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/channel_decay.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/exp2_of.h"
#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// A sum and what its additions rounded off: Knuth's two-sum, TAOCP volume 2, section 4.2.2.
struct ExactSum {
  Vector sum, lost;
  HWY_INLINE void add(Vector x) {
    const Vector next = hn::Add(sum, x), of_x = hn::Sub(next, sum);
    lost = hn::Add(lost, hn::Add(hn::Sub(sum, hn::Sub(next, of_x)), hn::Sub(x, of_x)));
    sum = next;
  }
  HWY_INLINE Vector rounded() const { return hn::Add(sum, lost); }
};

real totals_of(int64_t rows, int64_t cols, const real* x, real* totals) {
  real least = 0;
  over_row(cols, [&](int64_t j, auto part) HWY_ATTR {
    ExactSum sum{all_of(0), all_of(0)};
    for (int64_t i = 0; i < rows; ++i) sum.add(part.load(x + i * cols + j));
    part.store(sum.rounded(), totals + j);
  });
  for (int64_t j = 0; j < cols; ++j) least = std::min(least, totals[j]);
  return least;
}

void factors_of(int64_t rows, int64_t cols, const real* x, const real* shift, real* decay,
                real* grow) {
  over_row(cols, [=](int64_t j, auto part) HWY_ATTR {
    const Vector log2e = all_of(static_cast<real>(1.4426950408889634));
    const Vector start = shift ? hn::Neg(hn::Mul(log2e, part.load(shift + j))) : all_of(0);
    ExactSum sum{start, all_of(0)};
    part.store(exp2_of(start), decay + j);
    for (int64_t i = 0; i < rows; ++i) {
      sum.add(hn::Mul(log2e, part.load(x + i * cols + j)));
      const Vector at = sum.rounded();
      part.store(exp2_of(at), decay + (i + 1) * cols + j);
      part.store(exp2_of(hn::Neg(at)), grow + i * cols + j);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(totals_of);
HWY_EXPORT(factors_of);

real column_totals(int64_t rows, int64_t cols, const real* x, real* totals) {
  return HWY_DYNAMIC_DISPATCH(totals_of)(rows, cols, x, totals);
}
void channel_factors(int64_t rows, int64_t cols, const real* x, const real* shift, real* decay,
                     real* grow) {
  HWY_DYNAMIC_DISPATCH(factors_of)(rows, cols, x, shift, decay, grow);
}

}  // namespace attn
#endif
