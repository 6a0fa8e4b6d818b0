// Textbook softmax attention, which stores the n×n matrix of weights of each head. 4·n²·d FLOPs,
// causal or not.
#pragma once

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/softmax/softmax_attention.h"

namespace attn {

// Equals softmax_attention(). The weights are kept for the backward if one is recorded. Windows and
// patterns are an Error.
Var materialized_attention(const Var& q, const Var& k, const Var& v,
                           const SoftmaxOptions& options = {});
Cost materialized_cost(const AttentionShape& shape);

}  // namespace attn
