// What a decoder with a cache of a type answers, position by position: for fidelity.
#pragma once

#include <span>

#include "variants/api/attention.h"

namespace attn {

// q, k, v [batch, heads, length, head_dim], gates [batch, heads, length, width] -> as q: each
// position by a step after those before it. O(length²) and a cache of the whole length.
Tensor decoded_rows(const Attention& attention, CacheType cache, const Tensor& q, const Tensor& k,
                    const Tensor& v, std::span<const Var> gates);

// The weights of these answers, as implied_weights(): keys are cached in the type of the keys of
// `cache`, and the values that show them in float32. Costs length / head_dim times as much.
Tensor decoded_weights(const Attention& attention, CacheType cache, const Tensor& q,
                       const Tensor& k, std::span<const Var> gates);

}  // namespace attn
