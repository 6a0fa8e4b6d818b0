// Colour to grey as TensorFlow's rgb_to_grayscale for 8-bit pictures: weights .2989, .587 and .114,
// scaled by 255.5/255 and rounded down, so that R = G = B keeps its level. The sum is in integers;
// TensorFlow's single precision can differ by one level.
#pragma once

#include <cstdint>

namespace attn::data {

inline uint8_t grey_of(uint8_t red, uint8_t green, uint8_t blue) {
  const uint64_t sum = 2989u * red + 5870u * green + 1140u * blue;  // in 1/10000 of a level
  return static_cast<uint8_t>(511 * sum / 5'100'000);
}

}  // namespace attn::data
