// Mechanisms whose papers define causal attention alone.
#pragma once

#include <optional>
#include <string>

#include "variants/api/variant_info.h"

namespace attn {

inline std::optional<std::string> causal_alone(const AttentionShape& shape, const Params&) {
  if (shape.causal) return std::nullopt;
  return "defined for causal attention alone";
}

}  // namespace attn
