// Several positions on a state at once, as a prompt in chunks or speculated tokens have them.
#pragma once

#include <span>

#include "variants/api/decoder.h"

namespace attn {

// Appends len positions to the state of `decoder` and computes the output of each, which equals the
// row of that position in a causal forward pass over all positions. q, out [batch, heads, len,
// head_dim], k, v [batch, kv_heads, len, head_dim], gates [batch, heads, len, width]. Costs len
// steps, and copies of what they read and write where len > 1.
void answer(Decoder& decoder, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
            std::span<const Tensor> gates = {});

}  // namespace attn
