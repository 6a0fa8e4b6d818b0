// Written in intrinsics, as bfloat16_dot.cc: Highway 1.0 of Debian 12 has no product of bytes. Up
// to four rows share each load of keys or values; their sums stay in 24 of 32 registers. Bytes of
// queries are signed and those of weights are not, as the instruction wants one operand of each.
#include "core/simd/quantised_vnni.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/simd/first_lanes.h"

#if defined(__x86_64__) && !defined(ATTN_DOUBLE)
#include <immintrin.h>
#define ATTN_VNNI 1
#define ATTN_VNNI_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))
#endif

namespace attn {

#ifdef ATTN_VNNI
namespace {

ATTN_VNNI_TARGET inline __m512 scales_at(const uint8_t* at) {  // 16 numbers of bfloat16
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

template <int kRows>
struct IntegerSums {
  __m512i high[kRows][2], low[kRows][2];
};

// Both vectors of one step of keys with the words of each row.
template <int kRows>
ATTN_VNNI_TARGET inline void add_keys_step(__m512i k0, __m512i k1, const QueryBlock* const* queries,
                                           int64_t word, IntegerSums<kRows>& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m512i high = _mm512_set1_epi32(queries[r]->high[word]),
                  low = _mm512_set1_epi32(queries[r]->low[word]);
    sums.high[r][0] = _mm512_dpbusd_epi32(sums.high[r][0], k0, high);
    sums.high[r][1] = _mm512_dpbusd_epi32(sums.high[r][1], k1, high);
    sums.low[r][0] = _mm512_dpbusd_epi32(sums.low[r][0], k0, low);
    sums.low[r][1] = _mm512_dpbusd_epi32(sums.low[r][1], k1, low);
  }
}

template <int kRows, int kBits>
ATTN_VNNI_TARGET void score_panel(int64_t blocks, const uint8_t* panel, const QueryBlock* queries,
                                  const float* query_scales, real* logits, int64_t stride) {
  constexpr int kZero = kBits == 8 ? 128 : 8;  // what a byte of 0 is
  __m512 found[kRows][2];
  for (int r = 0; r < kRows; ++r) found[r][0] = found[r][1] = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b) {
    const QueryBlock* of_rows[kRows];
    IntegerSums<kRows> sums;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      of_rows[r] = queries + r * blocks + b;
      sums.high[r][0] = sums.high[r][1] = _mm512_set1_epi32(-kZero * of_rows[r]->high_sum);
      sums.low[r][0] = sums.low[r][1] = _mm512_set1_epi32(-kZero * of_rows[r]->low_sum);
    }
    for (int64_t step = 0; step < kBits; ++step, panel += kStepBytes) {
      const __m512i k0 = _mm512_loadu_si512(panel), k1 = _mm512_loadu_si512(panel + 64);
      if constexpr (kBits == 8) {
        add_keys_step<kRows>(k0, k1, of_rows, step, sums);
      } else {
        const __m512i half = _mm512_set1_epi8(15);
        add_keys_step<kRows>(_mm512_and_si512(k0, half), _mm512_and_si512(k1, half), of_rows, step,
                             sums);
        add_keys_step<kRows>(_mm512_and_si512(_mm512_srli_epi16(k0, 4), half),
                             _mm512_and_si512(_mm512_srli_epi16(k1, 4), half), of_rows, step + 4,
                             sums);
      }
    }
    const __m512 scales[2] = {scales_at(panel), scales_at(panel + 32)};
    panel += kKeyColumns * static_cast<int64_t>(sizeof(BFloat16));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(sums.high[r][v], 8), sums.low[r][v]);
        found[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(all), scales[v], found[r][v]);
      }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      _mm512_storeu_ps(logits + r * stride + v * 16,
                       _mm512_mul_ps(found[r][v], _mm512_set1_ps(query_scales[r])));
}

// Weights of up to kMostRows rows on the positions of a tile, times the scales of one block of
// channels: two bytes each, four positions a word.
struct TileWeights {
  uint8_t high[kMostRows][kValueRows], low[kMostRows][kValueRows];
  float units[kMostRows];  // of which there are 256·high + low
};

// The bytes of 64 integers below 65536, in the order of positions: packing works within quarters of
// a vector, which leaves words of four positions in another order.
ATTN_VNNI_TARGET inline void store_bytes(const __m512i* x, uint8_t* high, uint8_t* low) {
  const __m512i first = _mm512_packus_epi32(x[0], x[1]), second = _mm512_packus_epi32(x[2], x[3]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i mask = _mm512_set1_epi16(255);
  _mm512_storeu_si512(
      high, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(_mm512_srli_epi16(first, 8),
                                                                _mm512_srli_epi16(second, 8))));
  _mm512_storeu_si512(
      low, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(_mm512_and_si512(first, mask),
                                                               _mm512_and_si512(second, mask))));
}

// Zeros up to a multiple of 64 positions. A row's unit is of its largest product: a large scale at
// a position of little weight costs the others no digits.
ATTN_VNNI_TARGET void weigh_scales(int64_t rows, int64_t count, const real* weights, int64_t stride,
                                   const uint8_t* scales, TileWeights& to) {
  const int64_t padded = (count + 63) / 64 * 64;
  __m512 of[kValueRows / 16], total = _mm512_setzero_ps();
  for (int64_t j = 0; j < padded; j += 16) {
    const __m256i bits = _mm256_maskz_loadu_epi16(first_lanes(count - j), scales + 2 * j);
    of[j / 16] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    total = _mm512_add_ps(of[j / 16], total);
  }
  const bool is_finite = _mm512_reduce_add_ps(total) <= std::numeric_limits<float>::max();
  for (int64_t r = 0; r < rows; ++r) {
    const real* const row = weights + r * stride;
    __m512 products[kValueRows / 16], most = _mm512_setzero_ps();
    for (int64_t j = 0; j < padded; j += 16) {
      const __m512 some = _mm512_maskz_loadu_ps(first_lanes(count - j), row + j);
      products[j / 16] = _mm512_mul_ps(some, of[j / 16]);
      most = _mm512_max_ps(products[j / 16], most);
    }
    const float largest = _mm512_reduce_max_ps(most);
    to.units[r] = is_finite ? largest / 65535 : std::numeric_limits<float>::quiet_NaN();
    const bool has_inverse = largest >= std::numeric_limits<float>::min();
    const __m512 inverse = _mm512_set1_ps(has_inverse ? 1 / largest : 0),
                 steps = _mm512_set1_ps(65535);
    for (int64_t j = 0; j < padded; j += 64) {
      __m512i x[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v)
        x[v] =
            _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_mul_ps(products[j / 16 + v], inverse), steps));
      store_bytes(x, to.high[r] + j, to.low[r] + j);
    }
  }
}

template <int kRows>
ATTN_VNNI_TARGET inline void add_values_step(__m512i v0, __m512i v1, const TileWeights& weights,
                                             int64_t word, IntegerSums<kRows>& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m512i high = _mm512_set1_epi32(reinterpret_cast<const int32_t*>(weights.high[r])[word]),
                  low = _mm512_set1_epi32(reinterpret_cast<const int32_t*>(weights.low[r])[word]);
    sums.high[r][0] = _mm512_dpbusd_epi32(sums.high[r][0], high, v0);
    sums.high[r][1] = _mm512_dpbusd_epi32(sums.high[r][1], high, v1);
    sums.low[r][0] = _mm512_dpbusd_epi32(sums.low[r][0], low, v0);
    sums.low[r][1] = _mm512_dpbusd_epi32(sums.low[r][1], low, v1);
  }
}

// The number in the lower half of each byte. No lambda: one would lack the target.
ATTN_VNNI_TARGET inline __m512i low_half(__m512i x) {
  return _mm512_sub_epi8(_mm512_and_si512(x, _mm512_set1_epi8(15)), _mm512_set1_epi8(8));
}

// One block of channels of a tile, of which `channels` exist.
template <int kRows, int kBits>
ATTN_VNNI_TARGET __attribute__((noinline)) void add_block(int64_t count, const uint8_t* numbers,
                                                          const TileWeights& weights,
                                                          int64_t channels, real* sum, int64_t dim,
                                                          const real* factors) {
  IntegerSums<kRows> sums;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
    sums.high[r][0] = sums.high[r][1] = sums.low[r][0] = sums.low[r][1] = _mm512_setzero_si512();
  // 32 rows at a time: a loop of unknown length copies the sums in every round.
  for (int64_t word = 0; word < (count + 31) / 32 * 8; word += 8)
#pragma GCC unroll 8
    for (int64_t step = 0; step < kBits; ++step, numbers += kStepBytes) {
      const __m512i v0 = _mm512_loadu_si512(numbers), v1 = _mm512_loadu_si512(numbers + 64);
      if constexpr (kBits == 8) {
        add_values_step<kRows>(v0, v1, weights, word + step, sums);
      } else {
        add_values_step<kRows>(low_half(v0), low_half(v1), weights, word + 2 * step, sums);
        add_values_step<kRows>(low_half(_mm512_srli_epi16(v0, 4)),
                               low_half(_mm512_srli_epi16(v1, 4)), weights, word + 2 * step + 1,
                               sums);
      }
    }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const __mmask16 mask = first_lanes(channels - v * 16);
      real* const to = sum + r * dim + v * 16;
      const __m512 all =
          _mm512_mul_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.high[r][v]), _mm512_set1_ps(256),
                                        _mm512_cvtepi32_ps(sums.low[r][v])),
                        _mm512_set1_ps(weights.units[r]));
      const __m512 old = factors[r] == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, to);
      _mm512_mask_storeu_ps(to, mask, _mm512_fmadd_ps(_mm512_set1_ps(factors[r]), old, all));
    }
}

}  // namespace

bool has_vnni() {
  static const bool found = __builtin_cpu_supports("avx512vnni") &&
                            __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw");
  return found;
}

ATTN_VNNI_TARGET void vnni_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                                  const QuantisedQueries& queries, const uint8_t* panels,
                                  real* logits, int64_t stride) {
  const int64_t blocks = layout.blocks(), panel_bytes = kKeyColumns * layout.position_bytes();
  for (int64_t j = 0; j < count; j += kKeyColumns, panels += panel_bytes)
    for (int64_t r = 0; r < rows; r += kMostRows) {
      const int64_t some = std::min(kMostRows, rows - r);
      ATTN_OF_ROWS(score_panel, some, layout.bits, blocks, panels, queries.blocks + r * blocks,
                   queries.scales + r, logits + r * stride + j, stride)
    }
}

ATTN_VNNI_TARGET void vnni_add_values(const QuantisedLayout& layout, int64_t rows, int64_t count,
                                      int64_t tile_rows, const real* weights, int64_t stride,
                                      const uint8_t* tile, real* sum, const real* factors) {
  TileWeights taken;
  const int64_t number_bytes = tile_rows * kScaleChannels * layout.bits / 8;
  for (int64_t r = 0; r < rows; r += kMostRows) {
    const int64_t some = std::min(kMostRows, rows - r);
    for (int64_t b = 0; b < layout.blocks(); ++b) {
      const uint8_t* const block = tile + b * tile_rows * layout.block_bytes();
      const int64_t first = b * kScaleChannels;
      weigh_scales(some, count, weights + r * stride, stride, block + number_bytes, taken);
      ATTN_OF_ROWS(add_block, some, layout.bits, count, block, taken,
                   std::min(kScaleChannels, layout.dim - first), sum + r * layout.dim + first,
                   layout.dim, factors + r)
    }
  }
}

#else

bool has_vnni() { return false; }

void vnni_scores(const QuantisedLayout&, int64_t, int64_t, const QuantisedQueries&, const uint8_t*,
                 real*, int64_t) {
  throw_error("this build has no AVX512_VNNI");
}

void vnni_add_values(const QuantisedLayout&, int64_t, int64_t, int64_t, const real*, int64_t,
                     const uint8_t*, real*, const real*) {
  throw_error("this build has no AVX512_VNNI");
}

#endif

}  // namespace attn
