// Masks of AVX-512 for the beginning of a vector of 16 lanes.
#pragma once

#include <cstdint>

namespace attn {

// A bit for each of the first `count` lanes; all 16 from there on, none of a count below 1.
inline uint16_t first_lanes(int64_t count) {
  return static_cast<uint16_t>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

}  // namespace attn
