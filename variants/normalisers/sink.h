// A sink: a logit of each head that carries no value and takes its share of every row's weight.
// O(1) a row.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// What the keys keep of each row's weight: σ(log_sum - sinks[h]) for log_sum [batch, heads, q_len],
// of natural logarithms, and sinks [heads]. 0 where log_sum is -infinity.
Var share_beside_sink(const Var& log_sum, const Var& sinks);

}  // namespace attn
