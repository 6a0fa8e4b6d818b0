// Highway 1.0 of Debian 12 has no target with AVX512_BF16: this file is written in intrinsics, for
// functions with a target of their own, and asks the processor at run time. The sums of a tile of 6
// rows by 4 vectors stay in 24 of 32 registers, as in product.cc.
#include "core/simd/bfloat16_dot.h"

#include "core/base/check.h"
#include "core/simd/first_lanes.h"

#if defined(__x86_64__) && !defined(ATTN_DOUBLE)
#include <immintrin.h>
#define ATTN_BFLOAT16_DOT 1
#define ATTN_BFLOAT16_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")))
#endif

namespace attn {

#ifdef ATTN_BFLOAT16_DOT
namespace {

constexpr int64_t kDotLanes = 16;
constexpr int kDotVectors = 4;

// c [kRows, kVectors vectors], of the last vector the columns of `last`.
template <int kRows, int kVectors>
ATTN_BFLOAT16_TARGET inline void dot_tile(int64_t pairs, PairedLeft a, const BFloat16Pair* b,
                                          int64_t b_row, __mmask16 last, PairedEnd end, real* c,
                                          int64_t c_row) {
  __m512 sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) sums[i][v] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p) {
    __m512i row[kVectors];
    for (int v = 0; v < kVectors - 1; ++v) row[v] = _mm512_loadu_si512(b + v * kDotLanes);
    row[kVectors - 1] = _mm512_maskz_loadu_epi32(last, b + (kVectors - 1) * kDotLanes);
    for (int i = 0; i < kRows; ++i) {
      const __m512i x = _mm512_set1_epi32(static_cast<int>(a.data[i * a.row + p * a.step]));
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] = _mm512_dpbf16_ps(sums[i][v], (__m512bh)x, (__m512bh)row[v]);
    }
    b += b_row;
  }
  // A loop over sums that is not unrolled would keep them in memory from the start.
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    real* const to = c + i * c_row;
    const real kept = end.kept(i);
    const __m512 scale = _mm512_set1_ps(end.factor), keep = _mm512_set1_ps(kept);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 mask = v == kVectors - 1 ? last : __mmask16{0xffff};
      __m512 sum = _mm512_mul_ps(sums[i][v], scale);
      if (kept != 0)
        sum = _mm512_fmadd_ps(keep, _mm512_maskz_loadu_ps(mask, to + v * kDotLanes), sum);
      _mm512_mask_storeu_ps(to + v * kDotLanes, mask, sum);
    }
  }
}

template <int kVectors>
ATTN_BFLOAT16_TARGET void dot_stripe(int64_t rows, int64_t pairs, PairedLeft a,
                                     const BFloat16Pair* b, int64_t b_row, __mmask16 last,
                                     PairedEnd end, real* c, int64_t c_row) {
  for (; rows > 0; rows -= kTileRows) {
    switch (rows) {
      case 1:
        dot_tile<1, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
        break;
      case 2:
        dot_tile<2, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
        break;
      case 3:
        dot_tile<3, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
        break;
      case 4:
        dot_tile<4, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
        break;
      case 5:
        dot_tile<5, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
        break;
      default:
        dot_tile<6, kVectors>(pairs, a, b, b_row, last, end, c, c_row);
    }
    a.data += kTileRows * a.row;
    c += kTileRows * c_row;
    if (end.factors) end.factors += kTileRows;
  }
}

}  // namespace

bool has_bfloat16_dot() {
  static const bool found = __builtin_cpu_supports("avx512bf16") &&
                            __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw");
  return found;
}

ATTN_BFLOAT16_TARGET void dot_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a,
                                      PairedRight b, PairedEnd end, real* c, int64_t c_row) {
  constexpr int64_t kWidth = kDotVectors * kDotLanes;
  static_assert(kPanel % kWidth == 0);
  for (int64_t j = 0; j < cols; j += kWidth) {
    const BFloat16Pair* const from = b.data + j / kPanel * b.panel + j % kPanel;
    const int64_t left = cols - j;
    const int64_t part = left % kDotLanes;
    const __mmask16 last = first_lanes(left >= kWidth || part == 0 ? kDotLanes : part);
    if (left > 3 * kDotLanes)
      dot_stripe<4>(rows, pairs, a, from, b.row, last, end, c + j, c_row);
    else if (left > 2 * kDotLanes)
      dot_stripe<3>(rows, pairs, a, from, b.row, last, end, c + j, c_row);
    else if (left > kDotLanes)
      dot_stripe<2>(rows, pairs, a, from, b.row, last, end, c + j, c_row);
    else
      dot_stripe<1>(rows, pairs, a, from, b.row, last, end, c + j, c_row);
  }
}

ATTN_BFLOAT16_TARGET void dot_round_rows(const real* x, int64_t rows, int64_t depth, int64_t stride,
                                         BFloat16Pair* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i, x += stride, to += to_row)
    for (int64_t j = 0; j < depth; j += kDotLanes) {  // what is written in place was read before
      const int64_t left = depth - j;
      const __m256bh found = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(first_lanes(left), x + j));
      // With the 0 beside a last number.
      _mm256_mask_storeu_epi16(to + j / 2, first_lanes(left + left % 2), (__m256i)found);
    }
}

ATTN_BFLOAT16_TARGET void dot_round_row_pairs(const real* x, int64_t depth, int64_t cols,
                                              int64_t stride, BFloat16Pair* to, int64_t to_row) {
  // Number j of the first row beside number j of the second: 16 of each in one register.
  alignas(64) uint16_t order[2 * kDotLanes];
  for (int j = 0; j < kDotLanes; ++j) {
    order[2 * j] = static_cast<uint16_t>(j);
    order[2 * j + 1] = static_cast<uint16_t>(j + kDotLanes);
  }
  const __m512i beside = _mm512_load_si512(order);
  for (int64_t k = 0; k < depth; k += 2, x += 2 * stride, to += to_row)
    for (int64_t j = 0; j < cols; j += kDotLanes) {
      const __mmask16 mask = first_lanes(cols - j);
      const __m512 low = _mm512_maskz_loadu_ps(mask, x + j);
      const __m512 high =
          k + 1 < depth ? _mm512_maskz_loadu_ps(mask, x + stride + j) : _mm512_setzero_ps();
      const auto both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
      _mm512_mask_storeu_epi32(to + j, mask, _mm512_permutexvar_epi16(beside, both));
    }
}

#else

bool has_bfloat16_dot() { return false; }

void dot_product(int64_t, int64_t, int64_t, PairedLeft, PairedRight, PairedEnd, real*, int64_t) {
  throw_error("this build has no AVX512_BF16");
}

void dot_round_rows(const real*, int64_t, int64_t, int64_t, BFloat16Pair*, int64_t) {
  throw_error("this build has no AVX512_BF16");
}

void dot_round_row_pairs(const real*, int64_t, int64_t, int64_t, BFloat16Pair*, int64_t) {
  throw_error("this build has no AVX512_BF16");
}

#endif

}  // namespace attn
