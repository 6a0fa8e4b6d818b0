// The number types in which a decoder may cache keys and values, keys and values apart. The formats
// int8 and int4 are those of core/simd/quantised_layout.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/enum_names.h"

namespace attn {

enum class CacheNumber { float32, bfloat16, int8, int4 };

// Keys first: "int8/int4". One name where both are the same.
enum class CacheType {
  float32,
  bfloat16,
  int8,
  int4,
  float32_bfloat16,
  float32_int8,
  float32_int4,
  bfloat16_float32,
  bfloat16_int8,
  bfloat16_int4,
  int8_float32,
  int8_bfloat16,
  int8_int4,
  int4_float32,
  int4_bfloat16,
  int4_int8
};

constexpr std::array<EnumName<CacheType>, 16> names_of(CacheType) {
  using enum CacheType;
  return {{{float32, "float32"},
           {bfloat16, "bfloat16"},
           {int8, "int8"},
           {int4, "int4"},
           {float32_bfloat16, "float32/bfloat16"},
           {float32_int8, "float32/int8"},
           {float32_int4, "float32/int4"},
           {bfloat16_float32, "bfloat16/float32"},
           {bfloat16_int8, "bfloat16/int8"},
           {bfloat16_int4, "bfloat16/int4"},
           {int8_float32, "int8/float32"},
           {int8_bfloat16, "int8/bfloat16"},
           {int8_int4, "int8/int4"},
           {int4_float32, "int4/float32"},
           {int4_bfloat16, "int4/bfloat16"},
           {int4_int8, "int4/int8"}}};
}

// The mixed types stand in the order of their keys, then of their values.
constexpr CacheNumber keys_of(CacheType type) {
  const int at = static_cast<int>(type);
  return static_cast<CacheNumber>(at < 4 ? at : (at - 4) / 3);
}
constexpr CacheNumber values_of(CacheType type) {
  const int at = static_cast<int>(type);
  if (at < 4) return static_cast<CacheNumber>(at);
  const int other = (at - 4) % 3;
  return static_cast<CacheNumber>(other < (at - 4) / 3 ? other : other + 1);
}

constexpr bool is_integer(CacheNumber number) {
  return number == CacheNumber::int8 || number == CacheNumber::int4;
}
// Beside integers, the newest positions are kept in float32 too, and read there: so many, or the
// whole cache.
inline constexpr int64_t kRecentPositions = 32;
constexpr bool keeps_recent(CacheType type) {
  return is_integer(keys_of(type)) || is_integer(values_of(type));
}

}  // namespace attn
