// Additive attention, tiled: O_i = softmax_j(Σ_c w_c·tanh(a_ic + b_jc))·V for projected queries a
// and keys b. Bahdanau et al. 2015, arXiv:1409.0473, appendix A.1.2. n²·(3·units + 2·d) FLOPs and
// n²·units / 4 divisions; never an n×n buffer.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"

namespace attn {

// a [batch, heads, q_len, units], b [batch, heads, kv_len, units], weight [heads, units], v [batch,
// heads, kv_len, value_dim] -> [batch, heads, q_len, value_dim]. The mask must have no edges.
Var additive_attention(const Var& a, const Var& b, const Var& weight, const Var& v,
                       const Mask& mask);

// One forward without gradients and padding. Includes the two projections from head_dim.
Cost additive_cost(const AttentionShape& shape, int64_t units);

// Weights of decoding: to_query and to_key [heads, head_dim, units], weight [heads, units]. The
// decoder caches projected keys and values.
struct AdditiveWeights {
  Tensor to_query, to_key, weight;
};
std::unique_ptr<Decoder> additive_decoder(const Shape& position, int64_t capacity,
                                          const AdditiveWeights& weights);

}  // namespace attn
