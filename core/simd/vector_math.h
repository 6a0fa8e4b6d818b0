// Vector functions of the row kernels: partial vectors at the end of a row, sums along a row, e^x,
// sigmoid, tanh and softplus. The .cc files of kernels include this header once for each
// instruction set, like Highway's own headers.
#include <cmath>
#include <cstdint>

#include "core/base/real.h"

#if defined(ATTN_VECTOR_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_VECTOR_MATH_H
#undef ATTN_VECTOR_MATH_H
#else
#define ATTN_VECTOR_MATH_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;
constexpr int64_t kVector = HWY_LANES(real);

HWY_INLINE Vector all_of(real x) { return hn::Set(Tag(), x); }

// The part of a vector that one step along a row uses: all lanes, or the first `count` < kVector.
// Other lanes are neither read nor written; a load sets them to 0.
struct Whole {
  HWY_INLINE Vector load(const real* x) const { return hn::LoadU(Tag(), x); }
  HWY_INLINE void store(Vector x, real* to) const { hn::StoreU(x, Tag(), to); }
  HWY_INLINE Vector keep(Vector x) const { return x; }
  HWY_INLINE Vector keep_or(Vector x, Vector) const { return x; }
};
struct Partial {
  int64_t count;
  HWY_INLINE hn::Mask<Tag> mask() const { return hn::FirstN(Tag(), static_cast<size_t>(count)); }
  // Masked loads and stores of NEON and of Highway's emulation touch whole vectors.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  HWY_INLINE Vector load(const real* x) const { return hn::MaskedLoad(mask(), Tag(), x); }
  HWY_INLINE void store(Vector x, real* to) const { hn::BlendedStore(x, mask(), Tag(), to); }
#else
  HWY_INLINE Vector load(const real* x) const {
    HWY_ALIGN real part[kVector] = {};
    for (int64_t i = 0; i < count && i < kVector; ++i) part[i] = x[i];
    return hn::Load(Tag(), part);
  }
  HWY_INLINE void store(Vector x, real* to) const {
    HWY_ALIGN real part[kVector];
    hn::Store(x, Tag(), part);
    for (int64_t i = 0; i < count && i < kVector; ++i) to[i] = part[i];
  }
#endif
  HWY_INLINE Vector keep(Vector x) const { return hn::IfThenElseZero(mask(), x); }
  HWY_INLINE Vector keep_or(Vector x, Vector y) const { return hn::IfThenElse(mask(), x, y); }
};

// Calls body(j, part) for each vector of a row of n numbers.
template <class Body>
HWY_INLINE void over_row(int64_t n, const Body& body) {
  int64_t j = 0;
  for (; j + kVector <= n; j += kVector) body(j, Whole());
  if (j < n) body(j, Partial{n - j});
}

// The sum of the vectors term(j, part) over a row and over their lanes; lanes outside `part` are
// left out. The order depends only on n and the instruction set.
template <class Term>
HWY_INLINE real sum_row(int64_t n, const Term& term) {
  const Tag d;
  Vector a = hn::Zero(d), b = a;
  int64_t j = 0;
  for (; j + 2 * kVector <= n; j += 2 * kVector) {
    a = hn::Add(a, term(j, Whole()));
    b = hn::Add(b, term(j + kVector, Whole()));
  }
  if (j + kVector <= n) a = hn::Add(a, term(j, Whole())), j += kVector;
  if (j < n) b = hn::Add(b, Partial{n - j}.keep(term(j, Partial{n - j})));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

// e^x = 2^n·e^r with x = n·ln2 + r, |r| <= ln2/2; ln2 is split into two parts, so that r is exact
// to the last bits. 0 below the normal range, infinity above it, NaN for NaN. Error below 1.5 ulp.
HWY_INLINE Vector exp_anywhere(Vector x) {
  const Tag d;
  const Bits bits;
#if defined(ATTN_DOUBLE)
  constexpr real kLow = -708.39641853226408, kHigh = 709.78271289338397;
  constexpr real kRound = 6755399441055744.0;  // 1.5·2^52: adding it rounds
  constexpr real kLog2e = 1.4426950408889634;
  constexpr real kLn2High = -6.93147180369123816e-01, kLn2Low = -1.90821492927058770e-10;
  constexpr int kMantissa = 52;
  constexpr real kSeries[] = {// (e^r - 1 - r)/r², Taylor
                              1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                              1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                              1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                              1.0 / 24.0,         1.0 / 6.0,         0.5};
#else
  constexpr real kLow = -87.33654F, kHigh = 88.72283F;
  constexpr real kRound = 12582912.0F;  // 1.5·2^23: adding it rounds
  constexpr real kLog2e = 1.44269504F, kLn2High = -0.693359375F, kLn2Low = 2.12194440e-4F;
  constexpr int kMantissa = 23;
  constexpr real kSeries[] = {// (e^r - 1 - r)/r², interpolated at Chebyshev nodes
                              0.0013941213F, 0.0083752102F, 0.0416663516F, 0.1666641451F, 0.5F};
#endif
  const Vector low = all_of(kLow), high = all_of(kHigh);
  const Vector within = hn::Min(hn::Max(x, low), high);
  const Vector shifted = hn::MulAdd(within, all_of(kLog2e), all_of(kRound));
  const Vector n = hn::Sub(shifted, all_of(kRound));
  const Vector r = hn::MulAdd(n, all_of(kLn2Low), hn::MulAdd(n, all_of(kLn2High), within));
  Vector p = all_of(kSeries[0]);
  for (size_t i = 1; i < sizeof kSeries / sizeof *kSeries; ++i)
    p = hn::MulAdd(p, r, all_of(kSeries[i]));
  p = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), all_of(1));
  const auto power = hn::ShiftLeft<kMantissa>(hn::BitCast(bits, shifted));
  Vector y = hn::BitCast(d, hn::Add(hn::BitCast(bits, p), power));
  y = hn::IfThenElse(hn::Gt(x, high), all_of(kInfinity), y);
  return hn::IfThenZeroElse(hn::Lt(x, low), hn::IfThenElse(hn::Eq(x, x), y, x));
}

// Absolute error below 2 units in the last place of 1; limits and NaN as in std::.
HWY_INLINE Vector sigmoid_of(Vector x) {
  return hn::Div(all_of(1), hn::Add(all_of(1), exp_anywhere(hn::Neg(x))));
}
HWY_INLINE Vector tanh_of(Vector x) {
  return hn::Sub(all_of(1), hn::Div(all_of(2), hn::Add(all_of(1), exp_anywhere(hn::Add(x, x)))));
}

// log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|: log(1 + t) = 2·artanh(s), s = t/(2 + t) <=
// 1/3, by its series. Error below 4 ulp; limits and NaN as in std::.
HWY_INLINE Vector softplus_of(Vector x) {
  const Vector t = exp_anywhere(hn::Neg(hn::Abs(x)));
  const Vector s = hn::Div(t, hn::Add(all_of(2), t)), square = hn::Mul(s, s);
  constexpr int kTerms = kIsDouble ? 16 : 7;  // the next is below half a unit in the last place
  Vector p = all_of(real(1) / (2 * kTerms - 1));
  for (int i = kTerms - 2; i >= 0; --i) p = hn::MulAdd(p, square, all_of(real(1) / (2 * i + 1)));
  return hn::MulAdd(hn::Add(s, s), p, hn::IfThenElse(hn::Gt(x, all_of(0)), x, all_of(0)));
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#endif  // once for each instruction set
