// The mask as numbers, for variants composed from ops: simple, n_q·n_k memory. Fused kernels never
// make this.
#pragma once

#include "variants/api/attention.h"

namespace attn {

// [batch, heads, q_len, kv_len]: 1 where the query sees the key, else 0. `q` and `k` are the shapes
// of queries and keys.
Tensor visible_pairs(const Mask& mask, const Shape& q, const Shape& k);

}  // namespace attn
