// bfloat16: a number of 16 bits that are the upper half of a float. It has the range of a float and
// 8 significant bits. Kalamkar et al. 2019, arXiv:1905.12322.
#pragma once

#include <bit>
#include <cstdint>

namespace attn {

struct BFloat16 {
  uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;
};

// The largest relative error of rounding a number that is neither tiny nor huge: 8 significant bits
// make neighbours 2^-7 apart, relative to a power of two, and the nearest is half as far.
inline constexpr double kBFloat16Rounding = 1.0 / 256;

// Exact.
inline float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// Rounds to the nearest, ties to the one whose last bit is 0. Numbers beyond the largest become
// infinite, as in a rounding to float. NaN stays NaN, with its sign. Numbers of the double build
// are rounded to float first.
inline BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40;  // the upper half of a NaN may be that of an infinity
  return {static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded)};
}

}  // namespace attn
