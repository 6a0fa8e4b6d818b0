// Decoding with keys and values shared by query heads of which each keeps a state of its own. Costs
// what as many heads of keys cost, and a copy of each new key and value for every query head.
#pragma once

#include <memory>

#include "variants/api/attention.h"

namespace attn {

// `position` [batch, kv_heads, group, head_dim]; `inner` is of [batch, kv_heads · group, 1,
// head_dim].
std::unique_ptr<Decoder> repeating_decoder(const Shape& position, std::unique_ptr<Decoder> inner);

}  // namespace attn
