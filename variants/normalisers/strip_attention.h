// Attention in strips of queries, by any rule that makes weights of complete rows of logits
// (row_weights.h). 4·d FLOPs a visible pair; memory n·d and, for each thread, strips of some
// queries times all keys: never an n×n buffer. The backward, 10·d FLOPs a pair, makes the weights
// again.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"
#include "variants/normalisers/row_weights.h"

namespace attn {

using RowRule = std::shared_ptr<const RowWeights>;

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim]
// -> [batch, heads, q_len, value_dim]. Logits are scaled by 1/√(dim/parts). `learned`, where
// defined: rule->sums numbers that the rule has read, which get the gradient. The mask must have no
// edges.
Var strip_attention(const Var& q, const Var& k, const Var& v, const Mask& mask, const RowRule& rule,
                    const Var& learned = {});

// One forward without gradients.
Cost strip_cost(const AttentionShape& shape, const RowWeights& rule);

// Decoding from a KV cache: a step costs 4·d FLOPs and reads 2·d numbers for each position.
// `position` [batch, kv_heads, group, head_dim].
std::unique_ptr<Decoder> strip_decoder(const Shape& position, int64_t capacity,
                                       const RowRule& rule);

}  // namespace attn
