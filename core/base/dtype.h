// The number types that arrays of queries, keys, values and outputs may be stored in.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/enum_names.h"
#include "core/base/real.h"

namespace attn {

// float32 stands for `real`: in the double build its numbers are doubles.
enum class Dtype { float32, bfloat16 };

constexpr std::array<EnumName<Dtype>, 2> names_of(Dtype) {
  return {{{Dtype::float32, "float32"}, {Dtype::bfloat16, "bfloat16"}}};
}

// Bytes of one number.
constexpr int64_t size_of(Dtype dtype) {
  return dtype == Dtype::bfloat16 ? 2 : static_cast<int64_t>(sizeof(real));
}

}  // namespace attn
