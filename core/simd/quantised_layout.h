// Arrays of 8 or 4 bits a number: 32 channels of a position share one scale of bfloat16, as in the
// formats q8_0 and q4_0 of llama.cpp. 8.5 or 4.5 bits a number. How the numbers lie in memory
// follows the products of quantised_product.h.
#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/real.h"

namespace attn {

inline constexpr int64_t kScaleChannels = 32;  // that share a scale
inline constexpr int64_t kKeyColumns = 32;     // positions of a panel of keys
inline constexpr int64_t kValueRows = 256;     // positions of a tile of values, but of the last

// Symmetric, to the nearest, ties to even: a number is `scale` times an integer from -127 to 127
// (8 bits) or from -7 to 7 (4 bits). The scale is the largest magnitude over 127 or 7, rounded to
// bfloat16; a number beyond the largest integer becomes the largest.
struct QuantisedLayout {
  int64_t dim = 0;
  int bits = 8;

  int64_t blocks() const { return (dim + kScaleChannels - 1) / kScaleChannels; }
  // Of one block of channels of one position: its numbers, then its scale.
  int64_t block_bytes() const { return kScaleChannels * bits / 8 + int64_t{sizeof(BFloat16)}; }
  int64_t position_bytes() const { return blocks() * block_bytes(); }
  int largest() const { return bits == 8 ? 127 : 7; }
};

// A panel of keys holds kKeyColumns positions, block after block: the numbers of the block
// [step][column][4 channels], then a scale of each column. A byte is an integer plus 128; of 4
// bits, plus 8: the low halves of step s hold channels 4s to 4s + 3, the high halves those 16
// further on. Writes the key of one column. Of a key with a NaN or an infinite number, that block's
// scale is NaN.
void put_quantised_key(const QuantisedLayout& layout, const real* key, int64_t column,
                       uint8_t* panel);

// A tile of values holds `rows` positions, a multiple of 32, block after block: the numbers
// [step][channel][4 rows], then a scale of each row. A byte is a signed integer; of 4 bits an
// integer plus 8: the low halves of step s hold rows 8s to 8s + 3, the high halves the next four.
void put_quantised_value(const QuantisedLayout& layout, const real* value, int64_t row,
                         int64_t rows, uint8_t* tile);

}  // namespace attn
