// One source, compiled by Highway for each instruction set; see transpose.h.
#include "core/simd/transpose.h"

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/transpose.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kSide = 1;
HWY_INLINE void transpose_square(const real* x, int64_t, real* to, int64_t) { *to = *x; }
#else
// Squares of one 128-bit vector by as many rows: 4 × 4 floats, 2 × 2 doubles.
constexpr int64_t kSide = 16 / sizeof(real);
HWY_INLINE void transpose_square(const real* x, int64_t x_row, real* to, int64_t to_row) {
  const hn::Full128<real> d;
#if defined(ATTN_DOUBLE)
  const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + x_row);
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + to_row);
#else
  const hn::Full128<uint64_t> pairs;
  const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + x_row);
  const auto r2 = hn::LoadU(d, x + 2 * x_row), r3 = hn::LoadU(d, x + 3 * x_row);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_row);
#endif
}
#endif

#if HWY_TARGET == HWY_AVX3 && !defined(ATTN_DOUBLE)
// 16 × 16: squares of 4 × 4 inside the quarters of 16 registers, then the quarters themselves.
constexpr int64_t kLargeSide = 16;
HWY_INLINE void transpose_large(const real* x, int64_t x_row, real* to, int64_t to_row) {
  __m512 squares[16];  // [4·g + c]: of rows 4·g to 4·g + 3, columns c, 4 + c, 8 + c and 12 + c
  for (int g = 0; g < 4; ++g) {
    const real* const from = x + 4 * g * x_row;
    const __m512 r0 = _mm512_loadu_ps(from), r1 = _mm512_loadu_ps(from + x_row);
    const __m512 r2 = _mm512_loadu_ps(from + 2 * x_row), r3 = _mm512_loadu_ps(from + 3 * x_row);
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(r0, r1)),
                  low23 = _mm512_castps_pd(_mm512_unpacklo_ps(r2, r3)),
                  high01 = _mm512_castps_pd(_mm512_unpackhi_ps(r0, r1)),
                  high23 = _mm512_castps_pd(_mm512_unpackhi_ps(r2, r3));
    squares[4 * g] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    squares[4 * g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    squares[4 * g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    squares[4 * g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
  }
  for (int c = 0; c < 4; ++c) {
    const __m512 a = squares[c], b = squares[4 + c], e = squares[8 + c], f = squares[12 + c];
    const __m512 low_ab = _mm512_shuffle_f32x4(a, b, 0x44),
                 low_ef = _mm512_shuffle_f32x4(e, f, 0x44);
    const __m512 high_ab = _mm512_shuffle_f32x4(a, b, 0xEE),
                 high_ef = _mm512_shuffle_f32x4(e, f, 0xEE);
    _mm512_storeu_ps(to + c * to_row, _mm512_shuffle_f32x4(low_ab, low_ef, 0x88));
    _mm512_storeu_ps(to + (4 + c) * to_row, _mm512_shuffle_f32x4(low_ab, low_ef, 0xDD));
    _mm512_storeu_ps(to + (8 + c) * to_row, _mm512_shuffle_f32x4(high_ab, high_ef, 0x88));
    _mm512_storeu_ps(to + (12 + c) * to_row, _mm512_shuffle_f32x4(high_ab, high_ef, 0xDD));
  }
}
#else
constexpr int64_t kLargeSide = kSide;
HWY_INLINE void transpose_large(const real* x, int64_t x_row, real* to, int64_t to_row) {
  transpose_square(x, x_row, to, to_row);
}
#endif

void transpose_of(int64_t rows, int64_t cols, const real* x, int64_t x_row, real* to,
                  int64_t to_row) {
  const int64_t large_rows = rows / kLargeSide * kLargeSide,
                large_cols = cols / kLargeSide * kLargeSide;
  for (int64_t j = 0; j < large_cols; j += kLargeSide)
    for (int64_t i = 0; i < large_rows; i += kLargeSide)
      transpose_large(x + i * x_row + j, x_row, to + j * to_row + i, to_row);
  const int64_t square_rows = rows / kSide * kSide, square_cols = cols / kSide * kSide;
  for (int64_t j = 0; j < square_cols; j += kSide)
    for (int64_t i = j < large_cols ? large_rows : 0; i < square_rows; i += kSide)
      transpose_square(x + i * x_row + j, x_row, to + j * to_row + i, to_row);
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = j < square_cols ? square_rows : 0; i < rows; ++i)
      to[j * to_row + i] = x[i * x_row + j];
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(transpose_of);

void transpose(int64_t rows, int64_t cols, const real* x, int64_t x_row, real* to, int64_t to_row) {
  HWY_DYNAMIC_DISPATCH(transpose_of)(rows, cols, x, x_row, to, to_row);
}

}  // namespace attn
#endif
