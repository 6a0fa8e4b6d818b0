// 2^x of a vector for x <= 126 (double: 1022). The .cc files of kernels include this header once
// for each instruction set, like Highway's own headers.
#include <array>
#include <cstdint>

#include "core/base/real.h"

#if defined(ATTN_EXP2_OF_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_EXP2_OF_H
#undef ATTN_EXP2_OF_H
#else
#define ATTN_EXP2_OF_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace exp2_detail {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;  // of a number

// exp2_of(x) is 2^x for x <= 126 (double: 1022). It is exactly 0 for -infinity and for x <= -127
// (double: -1023); between there and the normal range it is 0 or subnormal. NaN stays NaN.
#if HWY_TARGET == HWY_AVX2 && !defined(ATTN_DOUBLE)
// x = n + i/8 + f, |f| <= 1/16: 2^x = t·(1 + f·p(f)), t = 2^(n + i/8) by a table that one
// instruction reads: fewer operations than a longer series.
constexpr int kMantissaBits = 20;  // of the sum's numbers below 1/8
// The mantissa of 2^(i/8), less i, which the sum has in its place.
alignas(32) constexpr std::array<uint32_t, 8> kMantissas = {0,
                                                            759234U - (1U << 20),
                                                            1587184U - (2U << 20),
                                                            2490071U - (3U << 20),
                                                            3474675U - (4U << 20),
                                                            4548394U - (5U << 20),
                                                            5719293U - (6U << 20),
                                                            6996167U - (7U << 20)};
// (2^f - 1)/f, highest power first, least relative error of 2^f: 2.5e-8
constexpr std::array<real, 3> kSeries = {0.0554962157403F, 0.240257629966F, 0.69314721427F};

HWY_INLINE Vector exp2_of(Vector x) {
  const Tag d;
  const Bits bits;
  // Where one is NaN, the instruction returns its second operand.
  x = Vector{_mm256_max_ps(_mm256_set1_ps(-127), x.raw)};
  // Adding this rounds to 1/8. The sum ends in the bits of 8·(n + 127) + i: 0 for the lowest x.
  const Vector round = hn::Set(d, 1.5F * (1 << kMantissaBits) + 127);
  const Vector sum = hn::Add(x, round);
  const Vector f = hn::Sub(x, hn::Sub(sum, round));
  const auto places = hn::BitCast(bits, sum);
  const hn::Vec<decltype(bits)> mantissas{
      _mm256_permutevar8x32_epi32(hn::Load(bits, kMantissas.data()).raw, places.raw)};
  const Vector t = hn::BitCast(d, hn::Add(hn::ShiftLeft<kMantissaBits>(places), mantissas));
  Vector p = hn::MulAdd(hn::Set(d, kSeries[0]), f, hn::Set(d, kSeries[1]));
  p = hn::MulAdd(p, f, hn::Set(d, kSeries[2]));
  return hn::Mul(t, hn::MulAdd(p, f, hn::Set(d, 1.0F)));
}
#else
// x = n + f, |f| <= 1/2: 2^x = 2^n·(1 + f·p(f))
#if defined(ATTN_DOUBLE)
[[maybe_unused]] constexpr int kMantissaBits = 52;
constexpr real kBias = 1023;
[[maybe_unused]] constexpr real kRound = 6755399441055744.0;  // 1.5·2^52: adding it rounds
// (2^f - 1)/f, highest power first, least relative error of 2^f: 3.4e-18
constexpr std::array<real, 11> kSeries = {
    4.4347697370610477681e-10, 7.0737833858168537885e-9,   1.0178199583193576039e-7,
    1.3215435281417408711e-6,  0.000015252733493097052618, 0.00015403530457114126332,
    0.0013333558146774656933,  0.0096181291075941181929,   0.055504108664820083045,
    0.24022650695910131266,    0.69314718055994532581};
#else
[[maybe_unused]] constexpr int kMantissaBits = 23;
constexpr real kBias = 127;
[[maybe_unused]] constexpr real kRound = 12582912.0F;  // 1.5·2^23: adding it rounds
// (2^f - 1)/f, highest power first, least relative error of 2^f: 9.2e-8
constexpr std::array<real, 5> kSeries = {0.00132647141012F, 0.00967151354044F, 0.0555073378681F,
                                         0.240222420657F, 0.693146977569F};
#endif

HWY_INLINE Vector exp2_of(Vector x) {
  const Tag d;
#if HWY_TARGET == HWY_AVX3
  const Vector whole = hn::Round(x), low = hn::Set(d, 1 - kBias);
#else
  const Vector low = hn::Set(d, -kBias), round = hn::Set(d, kRound + kBias);
  x = hn::IfThenElse(hn::Lt(x, low), low, x);  // a maximum may lose a NaN
  const Vector sum = hn::Add(x, round);  // it ends in the bits of n + kBias: 0 for the lowest x
  const Vector whole = hn::Sub(sum, round);
#endif
  const Vector f = hn::Sub(x, whole);
  Vector p = hn::Set(d, kSeries[0]);
  for (size_t i = 1; i < kSeries.size(); ++i) p = hn::MulAdd(p, f, hn::Set(d, kSeries[i]));
  p = hn::MulAdd(p, f, hn::Set(d, real(1)));
#if HWY_TARGET == HWY_AVX3 && defined(ATTN_DOUBLE)  // one instruction scales and selects
  return Vector{
      _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x.raw, low.raw, _CMP_NLT_UQ), p.raw, whole.raw)};
#elif HWY_TARGET == HWY_AVX3
  return Vector{
      _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x.raw, low.raw, _CMP_NLT_UQ), p.raw, whole.raw)};
#else
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(hn::BitCast(Bits(), sum))));
#endif
}
#endif

}  // namespace exp2_detail
using exp2_detail::exp2_of;

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#endif
