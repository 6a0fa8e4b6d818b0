// One source, compiled by Highway for each instruction set: the compiler vectorises the loops that
// widen a block of channels, 32 KB, and the products are those of product.h. With AVX512_VNNI or
// AVX2 the products are those of quantised_vnni.cc and quantised_avx2.cc.
#include "core/simd/quantised_product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/marks.h"
#include "core/simd/isa.h"
#include "core/simd/product.h"
#include "core/simd/quantised_avx2.h"
#include "core/simd/quantised_queries.h"
#include "core/simd/quantised_vnni.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/quantised_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// quantised_vnni.cc is for AVX-512 alone: what is held to AVX2 stays there.
bool takes_vnni_of() { return HWY_TARGET == HWY_AVX3 && has_vnni(); }
// AVX-512 without VNNI widens numbers to 16 lanes: which is faster there has not been measured.
constexpr bool kTakesAvx2 = HWY_TARGET == HWY_AVX2 && kHasAvx2Words;

// Four bytes of a step: as four channels of a column, or four rows of a channel.
HWY_INLINE int32_t byte_of(const uint8_t* at, int64_t index, int shift, int bits) {
  uint32_t word = 0;
  __builtin_memcpy(&word, at + index * 4, sizeof(word));
  return static_cast<int32_t>(word >> shift) & (bits == 8 ? 255 : 15);
}

HWY_INLINE real scale_at(const uint8_t* scales, int64_t index) {
  uint16_t bits = 0;
  __builtin_memcpy(&bits, scales + index * 2, sizeof(bits));
  return static_cast<real>(to_float({bits}));
}

// One block of channels of a panel of keys, as [channel][kValueRows] from `to` on.
template <int kBits>
void widen_keys(const uint8_t* block, real* HWY_RESTRICT to) {
  const uint8_t* const scales = block + kKeyColumns * kScaleChannels * kBits / 8;
  for (int64_t c = 0; c < kScaleChannels; ++c) {
    const int64_t step = kBits == 8 ? c / 4 : c % 16 / 4;
    const int shift = static_cast<int>(8 * (c % 4)) + (kBits == 4 && c >= 16 ? 4 : 0);
    const uint8_t* const from = block + step * kKeyColumns * 4;
    for (int64_t j = 0; j < kKeyColumns; ++j)
      to[c * kValueRows + j] =
          static_cast<real>(byte_of(from, j, shift, kBits) - (kBits == 8 ? 128 : 8)) *
          scale_at(scales, j);
  }
}

// One block of channels of `count` rows of a tile of values, as [row][kScaleChannels].
template <int kBits>
void widen_values(const uint8_t* block, int64_t count, int64_t tile_rows, real* HWY_RESTRICT to) {
  const uint8_t* const scales = block + tile_rows * kScaleChannels * kBits / 8;
  for (int64_t row = 0; row < count; ++row) {
    const int shift = static_cast<int>(8 * (row % 4)) + (kBits == 4 && row % 8 >= 4 ? 4 : 0);
    const uint8_t* const from = block + row / (kBits == 8 ? 4 : 8) * kScaleChannels * 4;
    const real scale = scale_at(scales, row);
    for (int64_t c = 0; c < kScaleChannels; ++c) {
      const int32_t byte = byte_of(from, c, shift, kBits);
      const int32_t number = kBits == 8 ? static_cast<int8_t>(byte) : byte - 8;
      to[row * kScaleChannels + c] = static_cast<real>(number) * scale;
    }
  }
}

void widened_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                    const QuantisedQueries& queries, const uint8_t* panels, real* logits,
                    int64_t stride) {
  real wide[kScaleChannels * kValueRows];
  for (int64_t b = 0; b < layout.blocks(); ++b) {
    for (int64_t j = 0; j < count; j += kKeyColumns) {
      const uint8_t* const block =
          panels + j * layout.position_bytes() + b * kKeyColumns * layout.block_bytes();
      layout.bits == 8 ? widen_keys<8>(block, wide + j) : widen_keys<4>(block, wide + j);
    }
    const int64_t first = b * kScaleChannels, depth = std::min(kScaleChannels, layout.dim - first);
    const Left left{queries.numbers + first, layout.dim};
    const Right right{wide, kValueRows};
    if (b == 0)
      product(rows, count, depth, left, right, logits, stride);
    else
      add_product(rows, count, depth, left, right, logits, stride);
  }
}

void add_widened_values(const QuantisedLayout& layout, int64_t rows, int64_t count,
                        int64_t tile_rows, const real* weights, int64_t stride, const uint8_t* tile,
                        real* sum, const real* factors) {
  real wide[kScaleChannels * kValueRows];
  for (int64_t b = 0; b < layout.blocks(); ++b) {
    const uint8_t* const block = tile + b * tile_rows * layout.block_bytes();
    if (layout.bits == 8)
      widen_values<8>(block, count, tile_rows, wide);
    else
      widen_values<4>(block, count, tile_rows, wide);
    const int64_t first = b * kScaleChannels;
    add_product(rows, std::min(kScaleChannels, layout.dim - first), count, {weights, stride},
                {wide, kScaleChannels}, sum + first, layout.dim, factors);
  }
}

void scores_of(const QuantisedLayout& layout, int64_t rows, int64_t count,
               const QuantisedQueries& queries, const uint8_t* panels, real* logits,
               int64_t stride) {
  if (takes_vnni_of()) return vnni_scores(layout, rows, count, queries, panels, logits, stride);
  if constexpr (kTakesAvx2)
    avx2_scores(layout, rows, count, queries, panels, logits, stride);
  else
    widened_scores(layout, rows, count, queries, panels, logits, stride);
}

void add_values_of(const QuantisedLayout& layout, int64_t rows, int64_t count, int64_t tile_rows,
                   const real* weights, int64_t stride, const uint8_t* tile, real* sum,
                   const real* factors) {
  if (takes_vnni_of())
    return vnni_add_values(layout, rows, count, tile_rows, weights, stride, tile, sum, factors);
  if constexpr (kTakesAvx2)
    avx2_add_values(layout, rows, count, tile_rows, weights, stride, tile, sum, factors);
  else
    add_widened_values(layout, rows, count, tile_rows, weights, stride, tile, sum, factors);
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
namespace {

constexpr int kQueryLargest = 127 * 256;

int32_t word_of(int low, int high) {  // of two numbers of 16 bits
  return static_cast<int32_t>((static_cast<uint32_t>(high) << 16) |
                              (static_cast<uint32_t>(low) & 0xffffu));
}

// Word `w` of four integers of at most kQueryLargest in magnitude.
void split_words(const int* numbers, int64_t w, QueryBlock& block) {
  uint32_t high_bits = 0, low_bits = 0;
  for (int i = 0; i < 4; ++i) {
    const int high = (numbers[i] + 128) >> 8, low = numbers[i] - 256 * high;
    high_bits |= static_cast<uint32_t>(static_cast<uint8_t>(high)) << 8 * i;
    low_bits |= static_cast<uint32_t>(static_cast<uint8_t>(low)) << 8 * i;
    block.high_sum += high;
    block.low_sum += low;
  }
  block.high[w] = static_cast<int32_t>(high_bits);
  block.low[w] = static_cast<int32_t>(low_bits);
  block.words[2 * w] = word_of(numbers[0], numbers[2]);
  block.words[2 * w + 1] = word_of(numbers[1], numbers[3]);
}

// Returns the scale; NaN where a number is not finite.
float round_query(const real* x, int64_t dim, QueryBlock* blocks) {
  float most = 0;
  bool is_finite = true;
  for (int64_t c = 0; c < dim; ++c) {
    const float size = std::abs(static_cast<float>(x[c]));
    is_finite = is_finite && std::isfinite(size);
    most = std::max(most, size);
  }
  const float scale = most / kQueryLargest;
  const bool is_rounded = is_finite && scale >= std::numeric_limits<float>::min();
  for (int64_t first = 0; first < dim; first += kScaleChannels) {
    QueryBlock& block = blocks[first / kScaleChannels] = {};
    for (int64_t w = 0; is_rounded && w < kScaleChannels / 4; ++w) {
      int numbers[4] = {};
      for (int64_t i = 0; i < 4 && first + 4 * w + i < dim; ++i)
        numbers[i] =
            static_cast<int>(std::nearbyint(static_cast<float>(x[first + 4 * w + i]) / scale));
      split_words(numbers, w, block);
    }
  }
  return is_finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

HWY_EXPORT(scores_of);
HWY_EXPORT(add_values_of);
HWY_EXPORT(takes_vnni_of);

int64_t quantised_query_reals(int64_t rows, int64_t dim) {
  const int64_t blocks = (dim + kScaleChannels - 1) / kScaleChannels;
  constexpr auto kEach =
      static_cast<int64_t>((sizeof(QueryBlock) + sizeof(real) - 1) / sizeof(real));
  return padded_reals(rows * dim) + padded_reals(rows) + padded_reals(rows * blocks * kEach);
}

void take_quantised_queries(const real* x, int64_t rows, int64_t dim, real factor, real* to) {
  const QuantisedQueries queries = QuantisedQueries::in(to, rows, dim);
  const int64_t blocks = (dim + kScaleChannels - 1) / kScaleChannels;
  for (int64_t i = 0; i < rows * dim; ++i) queries.numbers[i] = factor * x[i];
  for (int64_t r = 0; r < rows; ++r)
    queries.scales[r] = round_query(queries.numbers + r * dim, dim, queries.blocks + r * blocks);
}

void quantised_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                      const real* queries, const uint8_t* panels, real* logits, int64_t stride) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(scores_of)
  (layout, rows, count, QuantisedQueries::in(const_cast<real*>(queries), rows, layout.dim), panels,
   logits, stride);
}

void add_quantised_values(const QuantisedLayout& layout, int64_t rows, int64_t count,
                          int64_t tile_rows, const real* weights, int64_t stride,
                          const uint8_t* tile, real* sum, const real* factors) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(add_values_of)
  (layout, rows, count, tile_rows, weights, stride, tile, sum, factors);
}

std::string quantised_isa() {
  return HWY_DYNAMIC_DISPATCH(takes_vnni_of)() ? "avx512_vnni" : isa();
}

}  // namespace attn
#endif
