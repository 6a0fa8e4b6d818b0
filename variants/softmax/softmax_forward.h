// The forward pass of tiled softmax attention. 4·d FLOPs a visible pair; never an n×n buffer.
#pragma once

#include "core/tensor/bfloat16_tensor.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

// Writes out [batch, heads, q_len, value_dim] and, unless undefined, log_sum [batch, heads, q_len]:
// the log-sum-exp of the logits in units of log2, +infinity where a query sees no key.
void softmax_forward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                     const Tensor& v, const Tensor& out, const Tensor& log_sum);

// The same in bfloat16, with sums in float32; problem.dtype is bfloat16.
void softmax_forward(const SoftmaxProblem& problem, const BFloat16Tensor& q,
                     const BFloat16Tensor& k, const BFloat16Tensor& v, const BFloat16Tensor& out);

}  // namespace attn
