// Softmax attention whose logits carry a bias of each pair: softmax(scale·QKᵀ + B)·V. The cost is
// that of softmax_attention.h and two operations a pair; B is never stored.
#pragma once

#include "variants/softmax/softmax_attention.h"

namespace attn {

// B_ij = Σ_{j<s<=i} log_gates[s], of positions i and j: log_gates [batch, heads, kv_len, 1], all <=
// 0; a gate's own step is not among what it closes. Needs options.causal. Padding counts as 0, also
// where it is NaN, and has no gradient. Lin et al. 2025, arXiv:2503.02130, eq. 4.
Var gated_softmax_attention(const Var& q, const Var& k, const Var& v, const Var& log_gates,
                            const SoftmaxOptions& options);

// B_ij = table[h][j - i + kv_len - 1] for a key j and a query at position i, the last query at the
// last key: table [heads, q_len + kv_len - 1].
Var distance_softmax_attention(const Var& q, const Var& k, const Var& v, const Var& table,
                               const SoftmaxOptions& options);

}  // namespace attn
