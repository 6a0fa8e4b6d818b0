// One source, compiled by Highway for each instruction set. e^x = 2^n·e^r with x = n·ln2 + r and
// |r| <= ln2/2, ln2 in two parts so that r is exact to the last bits.
#include "core/simd/feature_rows.h"

#include <algorithm>
#include <array>

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/feature_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/max_lane.h"
HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;

constexpr int64_t kLanes = HWY_LANES(real);

// (e^r - 1 - r)/r² for |r| <= ln2/2, highest power first.
#if defined(ATTN_DOUBLE)
constexpr real kLow = -708.39641853226408, kLog2e = 1.4426950408889634;
constexpr real kLn2High = -6.93147180369123816e-01, kLn2Low = -1.90821492927058770e-10;
constexpr real kRound = 6755399441055744.0;  // 1.5·2^52: adding it rounds
[[maybe_unused]] constexpr int kMantissa = 52;
constexpr std::array<real, 12> kSeries = {  // Taylor
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
    1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
    1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
#else
constexpr real kLow = -87.33654F, kLog2e = 1.44269504F;
constexpr real kLn2High = -0.693359375F, kLn2Low = 2.12194440e-4F;
constexpr real kRound = 12582912.0F;  // 1.5·2^23: adding it rounds
[[maybe_unused]] constexpr int kMantissa = 23;
constexpr std::array<real, 5> kSeries = {  // interpolated at Chebyshev nodes
    0.0013941213F, 0.0083752102F, 0.0416663516F, 0.1666641451F, 0.5F};
#endif

// e^x for x <= 0; 0 below the normal range and for -infinity, NaN for NaN.
HWY_INLINE Vector exp_of(Vector x) {
  const Tag d;
  const Vector low = hn::Set(d, kLow), round = hn::Set(d, kRound);
  const Vector shifted = hn::MulAdd(x, hn::Set(d, kLog2e), round), n = hn::Sub(shifted, round);
  const Vector r = hn::MulAdd(n, hn::Set(d, kLn2Low), hn::MulAdd(n, hn::Set(d, kLn2High), x));
  Vector p = hn::Set(d, kSeries[0]);
  for (size_t i = 1; i < kSeries.size(); ++i) p = hn::MulAdd(p, r, hn::Set(d, kSeries[i]));
  p = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, real(1)));
#if HWY_TARGET == HWY_AVX3 && defined(ATTN_DOUBLE)  // one instruction scales and selects
  return Vector{
      _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x.raw, low.raw, _CMP_NLT_UQ), p.raw, n.raw)};
#elif HWY_TARGET == HWY_AVX3
  return Vector{
      _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x.raw, low.raw, _CMP_NLT_UQ), p.raw, n.raw)};
#else
  const Bits bits;
  const auto power = hn::ShiftLeft<kMantissa>(hn::BitCast(bits, shifted));
  const Vector y = hn::BitCast(d, hn::Add(hn::BitCast(bits, p), power));
  // where x is NaN, so is p; adding to its exponent would undo that
  return hn::IfThenZeroElse(hn::Lt(x, low), hn::IfThenElse(hn::Eq(x, x), y, x));
#endif
}

HWY_INLINE Vector elu_of(Vector x) {
  const Vector zero = hn::Zero(Tag());
  const Vector above = hn::IfThenZeroElse(hn::Lt(x, zero), x);
  return hn::Add(exp_of(hn::IfThenZeroElse(hn::Gt(x, zero), x)), above);  // NaN is in both
}

// to = map(from); what is left of a vector goes through a whole one.
template <class Map>
HWY_INLINE void map_row(const real* from, real* to, int64_t size, const Map& map) {
  const Tag d;
  int64_t j = 0;
  for (; j + kLanes <= size; j += kLanes) hn::StoreU(map(hn::LoadU(d, from + j)), d, to + j);
  if (j == size) return;
  HWY_ALIGN real part[kLanes] = {};
  std::copy(from + j, from + size, part);
  hn::Store(map(hn::Load(d, part)), d, part);
  std::copy_n(part, size - j, to + j);
}

void elu(int64_t size, const real* x, real* out) {
  map_row(x, out, size, [](Vector v) { return elu_of(v); });
}

HWY_INLINE real largest_of(const real* x, int64_t cols) {
  const Tag d;
  Vector a = hn::Set(d, -kInfinity), b = a;
  int64_t j = 0;
  for (; j + 2 * kLanes <= cols; j += 2 * kLanes) {
    a = hn::Max(a, hn::LoadU(d, x + j));
    b = hn::Max(b, hn::LoadU(d, x + j + kLanes));
  }
  if (j + kLanes <= cols) a = hn::Max(a, hn::LoadU(d, x + j)), j += kLanes;
  real largest = max_lane(d, hn::Max(a, b));
  for (; j < cols; ++j) largest = x[j] > largest ? x[j] : largest;
  return largest;
}

void exp_below_row_max(int64_t rows, int64_t cols, real* x, int64_t stride, real factor,
                       real* row_max) {
  const Vector factors = hn::Set(Tag(), factor);
  for (int64_t i = 0; i < rows; ++i) {
    real* const row = x + i * stride;
    row_max[i] = largest_of(row, cols);
    const Vector largest = hn::Set(Tag(), row_max[i]);
    map_row(row, row, cols,
            [=](Vector v) { return exp_of(hn::Mul(factors, hn::Sub(v, largest))); });
  }
}

void dots_of(int64_t rows, int64_t cols, const real* x, int64_t stride, const real* y, real* dots) {
  const Tag d;
  for (int64_t i = 0; i < rows; ++i) {
    const real* const row = x + i * stride;
    Vector a = hn::Zero(d), b = a;
    int64_t j = 0;
    for (; j + 2 * kLanes <= cols; j += 2 * kLanes) {
      a = hn::MulAdd(hn::LoadU(d, row + j), hn::LoadU(d, y + j), a);
      b = hn::MulAdd(hn::LoadU(d, row + j + kLanes), hn::LoadU(d, y + j + kLanes), b);
    }
    if (j + kLanes <= cols)
      a = hn::MulAdd(hn::LoadU(d, row + j), hn::LoadU(d, y + j), a), j += kLanes;
    dots[i] = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
    for (; j < cols; ++j) dots[i] += row[j] * y[j];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(elu);
HWY_EXPORT(exp_below_row_max);
HWY_EXPORT(dots_of);

void elu_plus_one_row(int64_t size, const real* x, real* out) {
  HWY_DYNAMIC_DISPATCH(elu)(size, x, out);
}

void exp_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real factor, real* row_max) {
  HWY_DYNAMIC_DISPATCH(exp_below_row_max)(rows, cols, x, stride, factor, row_max);
}

void dot_rows(int64_t rows, int64_t cols, const real* x, int64_t stride, const real* y,
              real* dots) {
  HWY_DYNAMIC_DISPATCH(dots_of)(rows, cols, x, stride, y, dots);
}

}  // namespace attn
#endif
