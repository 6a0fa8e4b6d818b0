// Softmax attention that also answers the log-sum-exp of the logits of each row, which merges or
// rescales results: L_i = log Σ_j exp(scale·q_i·k_j). Costs what softmax_attention.h costs, and
// 4 bytes a query.
#pragma once

#include <memory>

#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

struct SoftmaxResult {
  Var out;      // as softmax_attention() gives it
  Var log_sum;  // [batch, heads, q_len], -infinity where a query sees no key
};

// Both have gradients: dS = P⊙(dP - dO·O + dL).
SoftmaxResult softmax_with_log_sum(const Var& q, const Var& k, const Var& v,
                                   const SoftmaxOptions& options = {});
SoftmaxResult softmax_with_log_sum(const SoftmaxProblem& problem, const Var& q, const Var& k,
                                   const Var& v);

// For an op `out` whose backward needs the gradient of its log-sum-exps: `log_sum` as a Var whose
// backward, which comes before that of `out`, leaves its gradient in *gradient.
Var handed_log_sum(const Tensor& log_sum, const Var& out, const std::shared_ptr<Tensor>& gradient);

// Joins two softmaxes of the same queries over different keys into one: keys of both count twice.
// With sinks [heads], natural logits that carry no value, these take their share of each row. Rows
// without keys are zeros. The second result may be undefined. 3·d operations a row.
Var joined_softmax(const SoftmaxResult& a, const SoftmaxResult& b, const Var& sinks = {});

}  // namespace attn
