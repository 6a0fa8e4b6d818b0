// Written in intrinsics: Highway does not promise which products vpmaddwd's counterparts add. Keys
// and values are widened to 16 bits in registers, the even and the odd bytes of each four by
// themselves: so words of queries and of weights hold the numbers 0 and 2, or 1 and 3, of four. Up
// to four rows share each load; their sums, of 16 columns or channels, stay in 8 of 16 registers.
#include "core/simd/quantised_avx2.h"

#include <algorithm>
#include <limits>

#include "core/simd/fetch.h"

#if defined(__x86_64__) && !defined(ATTN_DOUBLE)  // kHasAvx2Words
#include <immintrin.h>
#define ATTN_AVX2_TARGET __attribute__((target("avx2,fma")))
#define ATTN_AVX2_KERNEL __attribute__((target("avx2,fma"), noinline))

namespace attn {
namespace {

constexpr int64_t kHalfBytes = 64;  // half of a step: two vectors
// How many bytes ahead of what is read memory is fetched. Reading so many takes longer than memory
// needs to answer, and they fill a quarter of an L1 of 32 KiB.
constexpr int64_t kIntegersAhead = 8192;
constexpr int64_t kScaleBytes = sizeof(BFloat16);

ATTN_AVX2_TARGET inline __m256i load(const uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

ATTN_AVX2_TARGET inline __m256 eight_scales(const uint8_t* at) {  // 8 numbers of bfloat16
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <int kRows>
struct WordSums {
  __m256i of[kRows][2];
};

// Adds the products of two vectors of 16-bit numbers with a word of each row. The compiler knows
// that sums of integers can be added up in any order, and would hold the products of many steps in
// memory to do so: an empty instruction that seems to change a sum keeps it in its register.
template <int kRows>
ATTN_AVX2_TARGET inline void add_words(__m256i x0, __m256i x1, const int32_t* words,
                                       int64_t row_words, WordSums<kRows>& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m256i word = _mm256_set1_epi32(words[r * row_words]);
    sums.of[r][0] = _mm256_add_epi32(sums.of[r][0], _mm256_madd_epi16(x0, word));
    sums.of[r][1] = _mm256_add_epi32(sums.of[r][1], _mm256_madd_epi16(x1, word));
    __asm__("" : "+x"(sums.of[r][0]), "+x"(sums.of[r][1]));
  }
}

// Halves of bytes: the lower ones with two words, the upper ones with the two words `upper` words
// on.
template <int kRows>
ATTN_AVX2_TARGET inline void add_halves(__m256i x0, __m256i x1, const int32_t* words, int64_t upper,
                                        int64_t row_words, WordSums<kRows>& sums) {
  const __m256i half = _mm256_set1_epi16(15);
  add_words<kRows>(_mm256_and_si256(x0, half), _mm256_and_si256(x1, half), words, row_words, sums);
  add_words<kRows>(_mm256_and_si256(_mm256_srli_epi16(x0, 8), half),
                   _mm256_and_si256(_mm256_srli_epi16(x1, 8), half), words + 1, row_words, sums);
  add_words<kRows>(_mm256_and_si256(_mm256_srli_epi16(x0, 4), half),
                   _mm256_and_si256(_mm256_srli_epi16(x1, 4), half), words + upper, row_words,
                   sums);
  add_words<kRows>(_mm256_srli_epi16(x0, 12), _mm256_srli_epi16(x1, 12), words + upper + 1,
                   row_words, sums);
}

// The sums of a block of channels of 16 columns; queries of rows are `blocks` apart.
template <int kRows, int kBits>
ATTN_AVX2_TARGET inline void score_half(const uint8_t* numbers, const QueryBlock* query,
                                        int64_t blocks, uintptr_t next, WordSums<kRows>& sums) {
  constexpr int kZero = kBits == 8 ? 128 : 8;  // what a byte of 0 is
  const int32_t* const words = query->words;
  const int64_t row_words = blocks * static_cast<int64_t>(sizeof(QueryBlock) / sizeof(int32_t));
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const QueryBlock& of_row = query[r * blocks];
    sums.of[r][0] = sums.of[r][1] =
        _mm256_set1_epi32(-kZero * (256 * of_row.high_sum + of_row.low_sum));
  }
#pragma GCC unroll 2
  for (int64_t step = 0; step < kBits; ++step) {
    const uint8_t* const at = numbers + step * kStepBytes;
    const __m256i x0 = load(at), x1 = load(at + 32);
    fetch<kHalfBytes>(next + static_cast<uintptr_t>(step * kHalfBytes));
    if constexpr (kBits == 8) {
      const __m256i byte = _mm256_set1_epi16(255);
      add_words<kRows>(_mm256_and_si256(x0, byte), _mm256_and_si256(x1, byte), words + 2 * step,
                       row_words, sums);
      add_words<kRows>(_mm256_srli_epi16(x0, 8), _mm256_srli_epi16(x1, 8), words + 2 * step + 1,
                       row_words, sums);
    } else {
      add_halves<kRows>(x0, x1, words + 2 * step, 8, row_words, sums);
    }
  }
}

template <int kRows, int kBits>
ATTN_AVX2_KERNEL void score_columns(int64_t blocks, const uint8_t* panel, const QueryBlock* queries,
                                    const float* query_scales, real* logits, int64_t stride,
                                    int64_t ahead) {
  constexpr int64_t kNumbers = kBits * kStepBytes, kBlock = kNumbers + kKeyColumns * kScaleBytes;
  for (int64_t b = 0; b < blocks; ++b, panel += kBlock) {
    const uintptr_t next = reinterpret_cast<uintptr_t>(panel) + static_cast<uintptr_t>(ahead);
    fetch<kHalfBytes>(next + kNumbers);
    for (int64_t half = 0; half < 2; ++half) {
      WordSums<kRows> sums;
      score_half<kRows, kBits>(panel + half * kHalfBytes, queries + b, blocks,
                               next + static_cast<uintptr_t>(half * kBits * kHalfBytes), sums);
      const uint8_t* const scales = panel + kNumbers + half * 16 * kScaleBytes;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          real* const to = logits + r * stride + half * 16 + v * 8;
          const __m256 unit = _mm256_mul_ps(eight_scales(scales + v * 8 * kScaleBytes),
                                            _mm256_set1_ps(query_scales[r]));
          const __m256 before = b == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(to);
          _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.of[r][v]), unit, before));
        }
    }
  }
}

// Weights of up to kMostRows rows on the positions of a tile, times the scales of one block of
// channels: for four positions a word of 0 and 2 and a word of 1 and 3.
struct TileWords {
  int32_t words[kMostRows][kValueRows / 2];
  // -8 times the sum of a row's rounded weights: a value of 4 bits is held as an integer plus 8.
  int32_t zeros[kMostRows];
  float units[kMostRows];  // of which a rounded weight is a number
};

ATTN_AVX2_TARGET inline float largest_lane(__m256 x) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

ATTN_AVX2_TARGET inline float sum_of_lanes(__m256 x) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

ATTN_AVX2_TARGET inline int32_t sum_of_lanes(__m256i x) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

// All ones in the first `count` lanes.
ATTN_AVX2_TARGET inline __m256i lanes_of(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(std::min<int64_t>(count, 8))),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The words of 8 positions in lanes 0, 1, 4, 5.
ATTN_AVX2_TARGET inline __m256i paired(__m256i x) {
  return _mm256_or_si256(x, _mm256_slli_epi32(_mm256_shuffle_epi32(x, 0xee), 16));
}

// The first `count` numbers from `at` on, zeros behind them. All 8 may be read of scales, of
// weights no more than there are.
ATTN_AVX2_TARGET inline __m256 some_scales(const uint8_t* at, int64_t count) {
  const __m256 all = eight_scales(at);
  return count >= 8 ? all : _mm256_and_ps(all, _mm256_castsi256_ps(lanes_of(count)));
}
ATTN_AVX2_TARGET inline __m256 some_weights(const real* at, int64_t count) {
  return count >= 8 ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, lanes_of(count));
}

// Zeros up to a multiple of 32 positions. A row's unit is of its largest product: a large scale at
// a position of little weight costs the others no digits.
ATTN_AVX2_TARGET void weigh_words(int64_t rows, int64_t count, const real* weights, int64_t stride,
                                  const uint8_t* scales, TileWords& to) {
  constexpr float kLargest = 32767;
  const int64_t padded = (count + 31) / 32 * 32;
  __m256 of[kValueRows / 8], total = _mm256_setzero_ps();
  for (int64_t j = 0; j < padded; j += 8) {
    of[j / 8] = some_scales(scales + j * kScaleBytes, count - j);
    total = _mm256_add_ps(of[j / 8], total);
  }
  const bool is_finite = sum_of_lanes(total) <= std::numeric_limits<float>::max();
  for (int64_t r = 0; r < rows; ++r) {
    const real* const row = weights + r * stride;
    __m256 products[kValueRows / 8], most = _mm256_setzero_ps();
    for (int64_t j = 0; j < padded; j += 8) {
      products[j / 8] = _mm256_mul_ps(some_weights(row + j, count - j), of[j / 8]);
      most = _mm256_max_ps(products[j / 8], most);
    }
    const float largest = largest_lane(most);
    to.units[r] = is_finite ? largest / kLargest : std::numeric_limits<float>::quiet_NaN();
    const bool has_inverse = largest >= std::numeric_limits<float>::min();
    const __m256 inverse = _mm256_set1_ps(has_inverse ? 1 / largest : 0),
                 steps = _mm256_set1_ps(kLargest);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t j = 0; j < padded; j += 16) {
      __m256i x[2];
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        x[v] =
            _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(products[j / 8 + v], inverse), steps));
        sum = _mm256_add_epi32(sum, x[v]);
        x[v] = paired(x[v]);
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.words[r] + j / 2),
                          _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(x[0], x[1]), 0xd8));
    }
    to.zeros[r] = sum_of_lanes(_mm256_slli_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), sum), 3));
  }
}

// A step of values with its words.
template <int kRows, int kBits>
ATTN_AVX2_TARGET inline void add_step(const uint8_t* at, const int32_t* words,
                                      WordSums<kRows>& sums) {
  constexpr int64_t kRowWords = kValueRows / 2;
  const __m256i x0 = load(at), x1 = load(at + 32);
  if constexpr (kBits == 8) {
    add_words<kRows>(_mm256_srai_epi16(_mm256_slli_epi16(x0, 8), 8),
                     _mm256_srai_epi16(_mm256_slli_epi16(x1, 8), 8), words, kRowWords, sums);
    add_words<kRows>(_mm256_srai_epi16(x0, 8), _mm256_srai_epi16(x1, 8), words + 1, kRowWords,
                     sums);
  } else {
    add_halves<kRows>(x0, x1, words, 2, kRowWords, sums);
  }
}

// 16 channels of a block of a tile, of which `channels` exist.
template <int kRows, int kBits>
ATTN_AVX2_KERNEL void add_half(int64_t count, const uint8_t* numbers, const TileWords& weights,
                               int64_t channels, real* sum, int64_t dim, const real* factors,
                               uintptr_t next) {
  constexpr int64_t kWords = kBits == 8 ? 2 : 4;  // of a step
  WordSums<kRows> sums;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
    sums.of[r][0] = sums.of[r][1] = _mm256_set1_epi32(kBits == 8 ? 0 : weights.zeros[r]);
  const int32_t* words = weights.words[0];
  for (int64_t rows = 0; rows < count; rows += 32)
#pragma GCC unroll 2
    for (int64_t step = 0; step < kBits; ++step) {
      add_step<kRows, kBits>(numbers, words, sums);
      fetch<kHalfBytes>(next);
      numbers += kStepBytes;
      next += kHalfBytes;
      words += kWords;
    }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const __m256i mask = lanes_of(channels - v * 8);
      real* const to = sum + r * dim + v * 8;
      const __m256 all =
          _mm256_mul_ps(_mm256_cvtepi32_ps(sums.of[r][v]), _mm256_set1_ps(weights.units[r]));
      const __m256 old = factors[r] == 0 ? _mm256_setzero_ps() : _mm256_maskload_ps(to, mask);
      _mm256_maskstore_ps(to, mask, _mm256_fmadd_ps(_mm256_set1_ps(factors[r]), old, all));
    }
}

}  // namespace

ATTN_AVX2_TARGET void avx2_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                                  const QuantisedQueries& queries, const uint8_t* panels,
                                  real* logits, int64_t stride) {
  const int64_t blocks = layout.blocks(), panel_bytes = kKeyColumns * layout.position_bytes();
  for (int64_t j = 0; j < count; j += kKeyColumns, panels += panel_bytes)
    for (int64_t r = 0; r < rows; r += kMostRows) {
      const int64_t some = std::min(kMostRows, rows - r), ahead = r == 0 ? kIntegersAhead : 0;
      ATTN_OF_ROWS(score_columns, some, layout.bits, blocks, panels, queries.blocks + r * blocks,
                   queries.scales + r, logits + r * stride + j, stride, ahead)
    }
}

ATTN_AVX2_TARGET void avx2_add_values(const QuantisedLayout& layout, int64_t rows, int64_t count,
                                      int64_t tile_rows, const real* weights, int64_t stride,
                                      const uint8_t* tile, real* sum, const real* factors) {
  TileWords taken;
  const int64_t number_bytes = tile_rows * kScaleChannels * layout.bits / 8;
  for (int64_t r = 0; r < rows; r += kMostRows) {
    const int64_t some = std::min(kMostRows, rows - r);
    for (int64_t b = 0; b < layout.blocks(); ++b) {
      const uint8_t* const block = tile + b * tile_rows * layout.block_bytes();
      weigh_words(some, count, weights + r * stride, stride, block + number_bytes, taken);
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t first = b * kScaleChannels + half * 16;
        if (first >= layout.dim) break;
        const uint8_t* const numbers = block + half * kHalfBytes;
        const uintptr_t next =
            reinterpret_cast<uintptr_t>(block) +
            static_cast<uintptr_t>((r == 0 ? kIntegersAhead : 0) + half * number_bytes / 2);
        ATTN_OF_ROWS(add_half, some, layout.bits, count, numbers, taken, layout.dim - first,
                     sum + r * layout.dim + first, layout.dim, factors + r, next)
      }
    }
  }
}

}  // namespace attn
#endif
