// One source, compiled by Highway for each instruction set.
#include "core/simd/softmax_rows.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/softmax_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/exp2_of.h"
#include "core/simd/max_lane.h"
#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;

constexpr int64_t kLanes = HWY_LANES(real);
static_assert(kRowMultiple % kLanes == 0);

HWY_INLINE real max_of(const real* x, int64_t cols) {
  const Tag d;
  Vector a = hn::LoadU(d, x), b = a;
  int64_t j = kLanes;
  for (; j + 2 * kLanes <= cols; j += 2 * kLanes) {
    a = hn::Max(a, hn::LoadU(d, x + j));
    b = hn::Max(b, hn::LoadU(d, x + j + kLanes));
  }
  if (j < cols) a = hn::Max(a, hn::LoadU(d, x + j));
  return max_lane(d, hn::Max(a, b));
}

// A maximum ignores NaN where masked pairs follow it.
bool holds_nan(const real* x, int64_t cols) {
  return std::any_of(x, x + cols, [](real value) { return value != value; });
}

// x becomes 2^(x - row_max); returns the sum.
HWY_INLINE real exp2_row(real* x, int64_t cols, real row_max) {
  const Tag d;
  const Vector from = hn::Set(d, row_max);
  Vector sums = hn::Zero(d);
  for (int64_t j = 0; j < cols; j += kLanes) {
    const Vector e = exp2_of(hn::Sub(hn::LoadU(d, x + j), from));
    hn::StoreU(e, d, x + j);
    sums = hn::Add(sums, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

void online_softmax(int64_t rows, int64_t cols, real* x, int64_t stride, real* row_max,
                    real* row_sum, real* rescale) {
  const Tag d;
  for (int64_t i = 0; i < rows; ++i) {
    real* const row = x + i * stride;
    const real seen = max_of(row, cols);
    rescale[i] = 1;
    if (!(seen <= row_max[i])) {  // so written, a NaN becomes the maximum
      rescale[i] = hn::GetLane(exp2_of(hn::Set(d, row_max[i] - seen)));
      row_max[i] = seen;
    }
    if (row_max[i] == -kInfinity &&
        !holds_nan(row, cols)) {  // all masked: the difference would be NaN
      for (int64_t j = 0; j < cols; j += kLanes) hn::StoreU(hn::Zero(d), d, row + j);
      rescale[i] = 0;
      continue;
    }
    row_sum[i] = row_sum[i] * rescale[i] + exp2_row(row, cols, row_max[i]);
  }
}

// Of any length. Four maxima, so that one waits for nothing of the others.
HWY_INLINE real max_of_any(const real* x, int64_t n) {
  const Tag d;
  Vector most[4] = {all_of(-kInfinity), all_of(-kInfinity), all_of(-kInfinity), all_of(-kInfinity)};
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes)
    for (int64_t i = 0; i < 4; ++i) most[i] = hn::Max(most[i], hn::LoadU(d, x + j + i * kLanes));
  for (; j + kLanes <= n; j += kLanes) most[0] = hn::Max(most[0], hn::LoadU(d, x + j));
  if (j < n) {
    const Partial part{n - j};
    most[1] = hn::Max(most[1], part.keep_or(part.load(x + j), most[1]));
  }
  return max_lane(d, hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3])));
}

// The rounding of the maximum's product is the same factor in each term.
real exp_from_max(int64_t n, real* x) {
  const Vector log2e = all_of(real(1.4426950408889634));
  const Vector from = hn::Mul(all_of(max_of_any(x, n)), log2e);
  return sum_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector e = exp2_of(hn::MulSub(part.load(x + j), log2e, from));
    part.store(e, x + j);
    return e;
  });
}

void logit_gradients(int64_t rows, int64_t cols, real* x, real* grads, int64_t stride,
                     const real* log_sum, const real* dots, real scale) {
  const Tag d;
  const Vector scales = hn::Set(d, scale);
  for (int64_t i = 0; i < rows; ++i) {
    const Vector from = hn::Set(d, log_sum[i]), dot = hn::Set(d, dots[i]);
    real* const row = x + i * stride;
    real* const to = grads + i * stride;
    for (int64_t j = 0; j < cols; j += kLanes) {
      const Vector weight = exp2_of(hn::Sub(hn::LoadU(d, row + j), from));
      const Vector difference = hn::Sub(hn::LoadU(d, to + j), dot);
      hn::StoreU(weight, d, row + j);
      hn::StoreU(hn::Mul(hn::Mul(weight, scales), difference), d, to + j);
    }
  }
}

void weight(int64_t rows, int64_t cols, real* x, int64_t stride, const real* log_sum) {
  const Tag d;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; j += kLanes) {
      real* const at = x + i * stride + j;
      hn::StoreU(exp2_of(hn::Sub(hn::LoadU(d, at), hn::Set(d, log_sum[i]))), d, at);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(online_softmax);
HWY_EXPORT(exp_from_max);
HWY_EXPORT(logit_gradients);
HWY_EXPORT(weight);

void online_softmax_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real* row_max,
                         real* row_sum, real* rescale) {
  const KernelMark mark(Part::softmax);
  HWY_DYNAMIC_DISPATCH(online_softmax)(rows, cols, x, stride, row_max, row_sum, rescale);
}

real exp_from_max_row(int64_t n, real* x) { return HWY_DYNAMIC_DISPATCH(exp_from_max)(n, x); }

void logit_grad_rows(int64_t rows, int64_t cols, real* x, real* grads, int64_t stride,
                     const real* log_sum, const real* dots, real scale) {
  const KernelMark mark(Part::softmax);
  HWY_DYNAMIC_DISPATCH(logit_gradients)(rows, cols, x, grads, stride, log_sum, dots, scale);
}

void weight_rows(int64_t rows, int64_t cols, real* x, int64_t stride, const real* log_sum) {
  const KernelMark mark(Part::softmax);
  HWY_DYNAMIC_DISPATCH(weight)(rows, cols, x, stride, log_sum);
}

}  // namespace attn
#endif
