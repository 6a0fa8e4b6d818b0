// The attention matrix of a variant, computed from its outputs for one-hot values. The variant must
// be linear in v.
#pragma once

#include "variants/api/attention.h"

namespace attn {

// -> [batch, heads, q_len, kv_len]; entry (i, j) is the weight of value j in output i. q, k and
// gates as for Attention::forward. Costs kv_len / head_dim forward passes and
// batch·heads·q_len·kv_len numbers. Records no gradients.
Tensor implied_weights(const Attention& attention, const Tensor& q, const Tensor& k,
                       const Mask& mask, std::span<const Var> gates = {});

}  // namespace attn
