// Rounding of one position's numbers to 8 or 4 bits, and where they are put; see
// quantised_layout.h. Once a position: plain loops.
#include "core/simd/quantised_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attn {
namespace {

// The integers of a block, and zeros where it has fewer channels.
struct QuantisedBlock {
  BFloat16 scale;
  std::array<int, kScaleChannels> numbers = {};
};

QuantisedBlock quantised_block(const real* x, int64_t count, int largest) {
  QuantisedBlock block;
  float most = 0;
  bool is_finite = true;
  for (int64_t c = 0; c < count; ++c) {
    const float size = std::abs(static_cast<float>(x[c]));
    is_finite = is_finite && std::isfinite(size);
    most = std::max(most, size);
  }
  if (!is_finite) most = std::numeric_limits<float>::quiet_NaN();
  block.scale = to_bfloat16(most / static_cast<float>(largest));
  const float scale = to_float(block.scale);
  if (!(scale > 0)) return block;  // zeros, or NaN times zeros
  const auto limit = static_cast<float>(largest);
  for (int64_t c = 0; c < count; ++c) {
    const float nearest = std::nearbyint(static_cast<float>(x[c]) / scale);
    block.numbers[static_cast<size_t>(c)] = static_cast<int>(std::clamp(nearest, -limit, limit));
  }
  return block;
}

void put_half(int number, bool is_high, uint8_t& byte) {
  const int shift = is_high ? 4 : 0;
  byte = static_cast<uint8_t>((byte & (0xf0 >> shift)) | (number + 8) << shift);
}

// Calls put(numbers, block) for each block of a position.
template <class Put>
void each_block(const QuantisedLayout& layout, const real* x, const Put& put) {
  for (int64_t b = 0; b < layout.blocks(); ++b) {
    const int64_t first = b * kScaleChannels;
    put(quantised_block(x + first, std::min(kScaleChannels, layout.dim - first), layout.largest()),
        b);
  }
}

BFloat16* scales_of(const QuantisedLayout& layout, int64_t positions, uint8_t* block) {
  return reinterpret_cast<BFloat16*>(block + positions * kScaleChannels * layout.bits / 8);
}

}  // namespace

void put_quantised_key(const QuantisedLayout& layout, const real* key, int64_t column,
                       uint8_t* panel) {
  each_block(layout, key, [&](const QuantisedBlock& from, int64_t b) {
    uint8_t* const to = panel + b * kKeyColumns * layout.block_bytes();
    scales_of(layout, kKeyColumns, to)[column] = from.scale;
    for (int64_t c = 0; c < kScaleChannels; ++c) {
      const int number = from.numbers[static_cast<size_t>(c)];
      const int64_t step = layout.bits == 8 ? c / 4 : c % 16 / 4;
      uint8_t& byte = to[(step * kKeyColumns + column) * 4 + c % 4];
      if (layout.bits == 8)
        byte = static_cast<uint8_t>(number + 128);
      else
        put_half(number, c >= 16, byte);
    }
  });
}

void put_quantised_value(const QuantisedLayout& layout, const real* value, int64_t row,
                         int64_t rows, uint8_t* tile) {
  each_block(layout, value, [&](const QuantisedBlock& from, int64_t b) {
    uint8_t* const to = tile + b * rows * layout.block_bytes();
    scales_of(layout, rows, to)[row] = from.scale;
    for (int64_t c = 0; c < kScaleChannels; ++c) {
      const int number = from.numbers[static_cast<size_t>(c)];
      const int64_t step = layout.bits == 8 ? row / 4 : row / 8;
      uint8_t& byte = to[(step * kScaleChannels + c) * 4 + row % 4];
      if (layout.bits == 8)
        byte = static_cast<uint8_t>(static_cast<int8_t>(number));
      else
        put_half(number, row % 8 >= 4, byte);
    }
  });
}

}  // namespace attn
