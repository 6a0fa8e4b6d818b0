// Exact softmax attention along given edges: query i averages the values of the keys that its list
// names, graph attention's mask. Velickovic et al. 2018, arXiv:1710.10903, section 2.1 (the mask),
// with dot products. Time and gradients O(edges · head_dim), workspace the longest list a thread.
#pragma once

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim]
// -> [batch, heads, q_len, value_dim]. A key must pass mask.edges (required; as Attention::forward
// checks them), kv_lengths and causal; a query that sees none gets zeros and gives zero gradients.
// What is hidden is never read. The same bits for any number of threads.
Var edge_attention(const Var& q, const Var& k, const Var& v, const Mask& mask);

// Where every batch entry has these edges, of one entry; decoding keeps all keys and values.
Cost edge_cost(const AttentionShape& shape, const Edges& edges);

}  // namespace attn
