// The attention matrix that a variant implies, read off by one-hot values: works for every variant
// that is linear in v.
#pragma once

#include "variants/api/attention.h"

namespace attn {

// -> [batch, heads, q_len, kv_len]; entry (i, j) is the weight of value j in output i. q, k as for
// Attention::forward. Costs kv_len / head_dim forwards and batch·heads·q_len·kv_len numbers;
// records no gradients.
Tensor implied_weights(const Attention& attention, const Tensor& q, const Tensor& k,
                       const Mask& mask);

}  // namespace attn
