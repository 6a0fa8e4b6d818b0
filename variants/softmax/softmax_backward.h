// The backward pass of tiled softmax attention. It recomputes the weights from the log-sum-exp:
// 10·d FLOPs a visible pair.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor/tensor.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

// Adds the gradients of q, k and v to grads[0..2], and of what problem.bias was made of to
// grads[3]; an undefined one is skipped. `out` and `log_sum` are those of softmax_forward().
// `grad_log_sum`, where defined, is the gradient of the natural log-sum-exp of each row.
void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads,
                      const Tensor& grad_log_sum = {});

// The number of (query, key) pairs that the backward multiplies for one head.
double softmax_backward_pairs(const Band& band, const BlockPattern* pattern, int64_t head);

}  // namespace attn
