// One source, compiled by Highway for each instruction set; see fourier_pass.h.
#include "core/simd/fourier_pass.h"

#include "core/base/check.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/fourier_pass.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

struct Pair {  // a vector of complex numbers
  Vector re, im;
};
HWY_INLINE Pair operator+(Pair a, Pair b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Pair operator-(Pair a, Pair b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
HWY_INLINE Pair operator*(Pair a, Pair b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
HWY_INLINE Pair plus(Pair a, Vector factor, Pair b) {  // a + factor·b
  return {hn::MulAdd(factor, b.re, a.re), hn::MulAdd(factor, b.im, a.im)};
}
HWY_INLINE Pair times(Vector factor, Pair a) {
  return {hn::Mul(factor, a.re), hn::Mul(factor, a.im)};
}
HWY_INLINE Pair plus_i(Pair a, Pair b) { return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)}; }
HWY_INLINE Pair minus_i(Pair a, Pair b) { return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)}; }

// The transform of so few numbers, in place.
template <int kRadix>
struct Few;
template <>
struct Few<2> {
  static HWY_INLINE void transform(Pair* x) {
    const Pair sum = x[0] + x[1];
    x[1] = x[0] - x[1], x[0] = sum;
  }
};
template <>
struct Few<4> {
  static HWY_INLINE void transform(Pair* x) {
    const Pair even = x[0] + x[2], odd = x[0] - x[2], sum = x[1] + x[3], difference = x[1] - x[3];
    x[0] = even + sum, x[1] = minus_i(odd, difference);
    x[2] = even - sum, x[3] = plus_i(odd, difference);
  }
};
template <>
struct Few<8> {
  static HWY_INLINE void transform(Pair* x) {
    Pair even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    Few<4>::transform(even), Few<4>::transform(odd);
    const Vector half = all_of(real(0.707106781186547524));  // √½: of an eighth of a turn
    const Pair zero{all_of(0), all_of(0)};
    odd[1] = times(half, minus_i(odd[1], odd[1]));
    odd[2] = minus_i(zero, odd[2]);
    odd[3] = times(half, minus_i(zero - odd[3], odd[3]));
    for (int k = 0; k < 4; ++k) x[k] = even[k] + odd[k], x[k + 4] = even[k] - odd[k];
  }
};
template <>
struct Few<3> {
  static HWY_INLINE void transform(Pair* x) {
    const Pair sum = x[1] + x[2], difference = x[1] - x[2];
    const Pair mean = plus(x[0], all_of(real(-0.5)), sum),
               turned = times(all_of(real(0.866025403784438647)), difference);  // sin(2π/3)
    x[0] = x[0] + sum, x[1] = minus_i(mean, turned), x[2] = plus_i(mean, turned);
  }
};
template <>
struct Few<5> {
  static HWY_INLINE void transform(Pair* x) {
    const Vector cos1 = all_of(real(0.309016994374947424)),
                 cos2 = all_of(real(-0.809016994374947424));  // of 2π/5 and 4π/5
    const Vector sin1 = all_of(real(0.951056516295153572)),
                 sin2 = all_of(real(0.587785252292473129));
    const Pair a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
    const Pair near = plus(plus(x[0], cos1, a), cos2, b), far = plus(plus(x[0], cos2, a), cos1, b);
    const Pair near_turned = plus(times(sin1, c), sin2, d),
               far_turned = plus(times(sin2, c), hn::Neg(sin1), d);
    x[0] = x[0] + (a + b);
    x[1] = minus_i(near, near_turned), x[4] = plus_i(near, near_turned);
    x[2] = minus_i(far, far_turned), x[3] = plus_i(far, far_turned);
  }
};

// Numbers of a pass, by vectors, from place `at` on.
template <class Real>
struct Split {
  Real *HWY_RESTRICT re, *HWY_RESTRICT im;

  template <class Part>
  HWY_INLINE Pair load(Part part, int64_t at) const {
    return {part.load(re + at), part.load(im + at)};
  }
  template <class Part>
  HWY_INLINE void store(Part part, Pair x, int64_t at) const {
    part.store(x.re, re + at), part.store(x.im, im + at);
  }
};
template <class Real, bool kIsSwapped>
struct Joined {
  Real* HWY_RESTRICT numbers;

  HWY_INLINE Pair load(Whole, int64_t at) const {
    Pair x;
    hn::LoadInterleaved2(Tag(), numbers + 2 * at, x.re, x.im);
    return turned(x);
  }
  HWY_INLINE void store(Whole, Pair x, int64_t at) const {
    x = turned(x);
    hn::StoreInterleaved2(x.re, x.im, Tag(), numbers + 2 * at);
  }
  HWY_INLINE Pair load(Partial part, int64_t at) const {
    const int64_t both = 2 * part.count, low = both < kVector ? both : kVector;
    HWY_ALIGN real apart[2 * kVector];
    hn::Store(Partial{low}.load(numbers + 2 * at), Tag(), apart);
    hn::Store(Partial{both - low}.load(numbers + 2 * at + low), Tag(), apart + kVector);
    Pair x;
    hn::LoadInterleaved2(Tag(), apart, x.re, x.im);
    return turned(x);
  }
  HWY_INLINE void store(Partial part, Pair x, int64_t at) const {
    HWY_ALIGN real both[2 * kVector];
    x = turned(x);
    hn::StoreInterleaved2(x.re, x.im, Tag(), both);
    for (int64_t i = 0; i < 2 * part.count && i < 2 * kVector; ++i) numbers[2 * at + i] = both[i];
  }

 private:
  static HWY_INLINE Pair turned(Pair x) { return kIsSwapped ? Pair{x.im, x.re} : x; }
};

template <int kRadix, bool kIsEach, class From, class To>
void pass_between(const FourierPass& pass, From from, To to) {
  const int64_t stride = pass.stride, apart = pass.parts * stride;
  for (int64_t p = 0; p < pass.parts; ++p) {
    const int64_t first = p * stride, place = kRadix * p;
    Pair turns[kRadix];
    for (int k = 1; k < kRadix && !kIsEach; ++k)
      turns[k] = {all_of(pass.turn_re[place + k]), all_of(pass.turn_im[place + k])};
    over_row(stride, [&](int64_t q, auto part) HWY_ATTR {
      Pair x[kRadix];
      for (int j = 0; j < kRadix; ++j) x[j] = from.load(part, first + j * apart + q);
      Few<kRadix>::transform(x);
      for (int k = 0; k < kRadix; ++k) {
        const int64_t at = (place + k) * stride + q;
        if constexpr (kIsEach)
          x[k] = x[k] * Pair{part.load(pass.turn_re + at), part.load(pass.turn_im + at)};
        else if (k > 0)
          x[k] = x[k] * turns[k];
        to.store(part, x[k], at);
      }
    });
  }
}

template <int kRadix>
void pass_to(const FourierPass& pass, Split<const real> from, FourierNumbers<real> to) {
  if (to.im)
    pass_between<kRadix, false>(pass, from, Split<real>{to.re, to.im});
  else if (to.is_swapped)
    pass_between<kRadix, false>(pass, from, Joined<real, true>{to.re});
  else
    pass_between<kRadix, false>(pass, from, Joined<real, false>{to.re});
}

void pass_of(const FourierPass& pass, FourierNumbers<const real> from, FourierNumbers<real> to) {
  const Split<const real> parts{from.re, from.im};
  const Split<real> results{to.re, to.im};
  if (!from.im && from.is_swapped)
    return pass_between<4, false>(pass, Joined<const real, true>{from.re}, results);
  if (!from.im) return pass_between<4, false>(pass, Joined<const real, false>{from.re}, results);
  if (pass.is_each) return pass_between<4, true>(pass, parts, results);
  if (pass.radix == 2) return pass_to<2>(pass, parts, to);
  if (pass.radix == 3) return pass_to<3>(pass, parts, to);
  if (pass.radix == 4) return pass_to<4>(pass, parts, to);
  if (pass.radix == 8) return pass_to<8>(pass, parts, to);
  pass_to<5>(pass, parts, to);
}

// Radix 8 has 16 vectors at a time and factors: with 16 registers it is a tenth slower than radix 4
// (Zen 3, 1024 numbers).
int most_radix() { return HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8 : 4; }

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(pass_of);
HWY_EXPORT(most_radix);

void fourier_pass(const FourierPass& pass, FourierNumbers<const real> from,
                  FourierNumbers<real> to) {
  ATTN_CHECK(from.im || (pass.radix == 4 && !pass.is_each && to.im),
             "a pass of radix {} cannot read complex numbers here", pass.radix);
  ATTN_CHECK(to.im || !pass.is_each, "a pass with a turn of each number writes two arrays");
  HWY_DYNAMIC_DISPATCH(pass_of)(pass, from, to);
}
int most_fourier_radix() { return HWY_DYNAMIC_DISPATCH(most_radix)(); }

}  // namespace attn
#endif
