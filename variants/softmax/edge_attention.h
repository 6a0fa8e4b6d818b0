// Exact softmax attention along the edges of a graph: query i attends to the keys in its list.
// Velickovic et al. 2018, arXiv:1710.10903, section 2.1 (the mask), with dot products. Time O(edges
// · head_dim), forward and backward; workspace: the longest list for each thread.
#pragma once

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim]
// -> [batch, heads, q_len, value_dim]. A visible key is in mask.edges (required; as
// Attention::forward checks them) and allowed by kv_lengths and causal. A query that sees no key
// gets zeros and zero gradients. Invisible keys are never read. The bits do not depend on the
// number of threads.
Var edge_attention(const Var& q, const Var& k, const Var& v, const Mask& mask);

// `edges` are those of one batch entry; all entries have the same. Decoding keeps all keys and
// values.
Cost edge_cost(const AttentionShape& shape, const Edges& edges);

}  // namespace attn
