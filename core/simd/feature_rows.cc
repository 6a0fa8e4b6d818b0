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
#include "core/simd/vector_math.h"

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

constexpr real kSqrtHalf = real(0.70710678118654752);

// Of rows whose y fit in one vector. The products of a begin where those of a - 1 end, and the
// vectors that hold them overlap: each overwrites what the one before it wrote too much.
void pairs_of_vector(int64_t rows, int64_t f, real scale, real* phi, int64_t stride) {
  const Tag d;
  hwy::MakeSigned<real> places[2 * kLanes];  // those from a on turn a vector by a lanes
  for (int64_t j = 0; j < 2 * kLanes; ++j)
    places[j] = static_cast<hwy::MakeSigned<real>>(j % kLanes);
  const Vector squares =
      hn::IfThenElse(hn::FirstN(d, 1), hn::Set(d, kSqrtHalf), hn::Set(d, real(1)));
  const int64_t count = f * (f + 1) / 2;
  for (int64_t i = 0; i < rows; ++i, phi += stride) {
    real *const y = phi + 1, *const pairs = y + f;
    const Vector own = hn::Mul(Partial{f}.load(y), hn::Set(d, scale));
    HWY_ALIGN real last[2 * kLanes] = {}, factors[kLanes];
    hn::Store(own, d, factors);
    std::copy_n(factors, f, y);
    phi[0] = 1;
    int64_t at = 0, of_last = count;  // where the first vector begins that has no room
    for (int64_t a = 0; a < f; at += f - a, ++a) {
      const Vector turned = hn::TableLookupLanes(own, hn::SetTableIndices(d, places + a));
      const Vector row = hn::Mul(hn::Mul(squares, hn::Set(d, factors[a])), turned);
      if (at + kLanes <= count) {
        hn::StoreU(row, d, pairs + at);
      } else {
        of_last = std::min(of_last, at);
        hn::StoreU(row, d, last + (at - of_last));
      }
    }
    std::copy_n(last, count - of_last, pairs + of_last);
  }
}

void pairs_of(int64_t rows, int64_t f, real scale, real* phi, int64_t stride) {
  if (f <= kLanes) return pairs_of_vector(rows, f, scale, phi, stride);
  for (int64_t i = 0; i < rows; ++i, phi += stride) {
    real *const y = phi + 1, *pairs = y + f;
    phi[0] = 1;
    for (int64_t a = 0; a < f; ++a) y[a] *= scale;
    for (int64_t a = 0; a < f; pairs += f - a, ++a) {
      const real factor = y[a];
      const real* const from = y + a;
      real* const to = pairs;
      for (int64_t j = 0; j < f - a; ++j) to[j] = factor * from[j];
      pairs[0] *= kSqrtHalf;
    }
  }
}

// The gradient of y is that of itself, plus (U + Uᵀ)·y for the triangle U of the gradients of
// pairs, whose diagonal is multiplied by √½. Columns of U are read a vector at a time, from its
// first row to its last one.
template <class Part>
HWY_INLINE void add_columns(int64_t f, int64_t column, Part part, const real* y, const real* pairs,
                            real* sums) {
  const Tag d;
  const Vector own = part.load(y + column);
  const Vector places = hn::Iota(d, static_cast<real>(column));
  Vector below = hn::Zero(d);
  const int64_t last = std::min(f, column + kLanes);
  for (int64_t a = 0; a < last; pairs += f - a, ++a) {
    const Vector here = all_of(static_cast<real>(a));
    // Lanes before the diagonal hold what lies before this row of U: numbers of `grad` too.
    Vector row = part.load(pairs + column - a);
    row = hn::IfThenElseZero(hn::Ge(places, here), row);
    row = hn::IfThenElse(hn::Eq(places, here), hn::Mul(row, all_of(kSqrtHalf)), row);
    below = hn::MulAdd(all_of(y[a]), row, below);
    sums[a] += hn::GetLane(hn::SumOfLanes(d, hn::Mul(row, own)));
  }
  part.store(hn::Add(part.load(sums + column), below), sums + column);
}

void pair_gradients(int64_t rows, int64_t f, real scale, const real* phi, real* grad,
                    int64_t stride) {
  for (int64_t i = 0; i < rows; ++i, phi += stride, grad += stride) {
    real* const sums = grad + 1;
    for (int64_t j = 0; j < f; j += kLanes) {
      if (j + kLanes <= f)
        add_columns(f, j, Whole(), phi + 1, grad + 1 + f, sums);
      else
        add_columns(f, j, Partial{f - j}, phi + 1, grad + 1 + f, sums);
    }
    for (int64_t a = 0; a < f; ++a) grad[a] = scale * sums[a];
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
HWY_EXPORT(pairs_of);
HWY_EXPORT(pair_gradients);

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

void pair_rows(int64_t rows, int64_t f, real scale, real* phi, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(pairs_of)(rows, f, scale, phi, stride);
}

void pair_gradient_rows(int64_t rows, int64_t f, real scale, const real* phi, real* grad,
                        int64_t stride) {
  HWY_DYNAMIC_DISPATCH(pair_gradients)(rows, f, scale, phi, grad, stride);
}

}  // namespace attn
#endif
