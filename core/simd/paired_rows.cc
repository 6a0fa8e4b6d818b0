// One source, compiled by Highway for each instruction set. With y = n·π/2 + r, |r| <= π/4, sin y
// and cos y are ±sin r or ±cos r, as n mod 4 says; π/2 is split into three parts whose products
// with n are exact.
#include "core/simd/paired_rows.h"

#include <array>

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/paired_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/max_lane.h"
#include "core/simd/vector_math.h"
HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// (sin r - r)/r³ and (cos r - 1 + r²/2)/r⁴ in powers of r², highest first.
#if defined(ATTN_DOUBLE)
constexpr real kQuarter[] = {1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21};
constexpr real kRoundTurns = 6755399441055744.0;  // 1.5·2^52: adding it rounds
constexpr int kSignBit = 62;                      // from bit 1 to the sign
constexpr std::array<real, 7> kSine = {           // Taylor
    -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
    -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
constexpr std::array<real, 7> kCosine = {
    1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
    1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0};
#else
constexpr real kQuarter[] = {1.5703125F, 0.0004837512969970703F, 7.549790126404332e-08F};
constexpr real kRoundTurns = 12582912.0F;  // 1.5·2^23: adding it rounds
constexpr int kSignBit = 30;
constexpr std::array<real, 3> kSine = {  // interpolated at Chebyshev nodes
    -1.9587639099e-04F, 8.3327471047e-03F, -1.6666664656e-01F};
constexpr std::array<real, 3> kCosine = {2.4547689772e-05F, -1.3888301868e-03F, 4.1666664653e-02F};
#endif

template <size_t terms>
HWY_INLINE Vector polynomial(Vector x, const std::array<real, terms>& factors) {
  Vector p = all_of(factors[0]);
  for (size_t i = 1; i < terms; ++i) p = hn::MulAdd(p, x, all_of(factors[i]));
  return p;
}

struct SineCosine {
  Vector sine, cosine;
};

HWY_INLINE SineCosine sine_cosine(Vector y) {
  constexpr real kTurns = real(0.63661977236758134);  // 2/π
  const Tag d;
  const Bits bits;
  const Vector shifted = hn::MulAdd(y, all_of(kTurns), all_of(kRoundTurns));
  const Vector n = hn::Sub(shifted, all_of(kRoundTurns));
  Vector r = y;
  for (const real part : kQuarter) r = hn::NegMulAdd(n, all_of(part), r);
  // Of numbers so large that they have no digits left for an angle.
  r = hn::IfThenZeroElse(hn::Gt(hn::Abs(r), all_of(1)), r);
  const Vector square = hn::Mul(r, r);
  const Vector sine = hn::MulAdd(hn::Mul(r, square), polynomial(square, kSine), r);
  const Vector cosine = hn::MulAdd(hn::Mul(square, square), polynomial(square, kCosine),
                                   hn::NegMulAdd(square, all_of(real(0.5)), all_of(1)));
  const auto turns = hn::BitCast(bits, shifted), one = hn::Set(bits, 1), two = hn::Set(bits, 2);
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(turns, one), hn::Zero(bits)));
  const auto negative_sine = hn::ShiftLeft<kSignBit>(hn::And(turns, two));
  const auto negative_cosine = hn::ShiftLeft<kSignBit>(hn::And(hn::Add(turns, one), two));
  return {hn::Xor(hn::IfThenElse(odd, cosine, sine), hn::BitCast(d, negative_sine)),
          hn::Xor(hn::IfThenElse(odd, sine, cosine), hn::BitCast(d, negative_cosine))};
}

void sines(int64_t rows, int64_t cols, real* x, int64_t stride, const real* factors,
           real amplitude) {
  for (int64_t i = 0; i < rows; ++i) {
    real* const row = x + i * stride;
    over_row(cols, [&](int64_t j, auto part) {
      const SineCosine pair = sine_cosine(hn::Mul(part.load(row + j), all_of(factors[i])));
      part.store(hn::Mul(pair.sine, all_of(amplitude)), row + j);
      part.store(hn::Mul(pair.cosine, all_of(amplitude)), row + cols + j);
    });
  }
}

void softmax_pairs(int64_t rows, int64_t cols, real* x, int64_t stride) {
  const Tag d;
  for (int64_t i = 0; i < rows; ++i) {
    real *const up = x + i * stride, *const down = up + cols;
    Vector largest = all_of(-kInfinity), smallest = largest;  // of -x
    over_row(cols, [&](int64_t j, auto part) {
      const Vector x_j = part.load(up + j), least = all_of(-kInfinity);
      largest = hn::Max(largest, part.keep_or(x_j, least));
      smallest = hn::Max(smallest, part.keep_or(hn::Neg(x_j), least));
    });
    const Vector up_max = all_of(max_lane(d, largest)), down_max = all_of(max_lane(d, smallest));
    Vector up_sum = hn::Zero(d), down_sum = up_sum;
    over_row(cols, [&](int64_t j, auto part) {
      const Vector x_j = part.load(up + j);
      const Vector a = exp_anywhere(hn::Sub(x_j, up_max));
      const Vector b = exp_anywhere(hn::Sub(hn::Neg(x_j), down_max));
      part.store(a, up + j);
      part.store(b, down + j);
      up_sum = hn::Add(up_sum, part.keep(a));
      down_sum = hn::Add(down_sum, part.keep(b));
    });
    const Vector up_factor = hn::Div(all_of(1), hn::SumOfLanes(d, up_sum)),
                 down_factor = hn::Div(all_of(1), hn::SumOfLanes(d, down_sum));
    over_row(cols, [&](int64_t j, auto part) {
      part.store(hn::Mul(part.load(up + j), up_factor), up + j);
      part.store(hn::Mul(part.load(down + j), down_factor), down + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(sines);
HWY_EXPORT(softmax_pairs);

void sin_cos_rows(int64_t rows, int64_t cols, real* x, int64_t stride, const real* factors,
                  real amplitude) {
  HWY_DYNAMIC_DISPATCH(sines)(rows, cols, x, stride, factors, amplitude);
}

void softmax_pair_rows(int64_t rows, int64_t cols, real* x, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(softmax_pairs)(rows, cols, x, stride);
}

}  // namespace attn
#endif
