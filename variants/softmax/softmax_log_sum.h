// Softmax attention that also answers the log-sum-exp of the logits of each row, which merges or
// rescales results: L_i = log Σ_j exp(scale·q_i·k_j). Costs what softmax_attention.h costs, and
// 4 bytes a query.
#pragma once

#include "variants/softmax/softmax_attention.h"

namespace attn {

struct SoftmaxResult {
  Var out;      // as softmax_attention() gives it
  Var log_sum;  // [batch, heads, q_len], -infinity where a query sees no key
};

// Both have gradients: dS = P⊙(dP - dO·O + dL).
SoftmaxResult softmax_with_log_sum(const Var& q, const Var& k, const Var& v,
                                   const SoftmaxOptions& options = {});

}  // namespace attn
