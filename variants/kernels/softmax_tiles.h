// What forward and backward of tiled softmax attention share: sizes, one head's pointers, and the
// backward's entry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "variants/kernels/band.h"

namespace attn {

struct SoftmaxProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  double scale = 1;
  int64_t left = -1, right = -1;
  std::vector<int64_t> kv_lengths;

  Band band(int64_t batch_index) const {
    const int64_t length =
        kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(batch_index)];
    return {q_len, kv_len, length, left, right};
  }
};

// Adds the gradients of q, k and v into grads (undefined: not wanted). log_sum is [batch, heads,
// q_len], natural, +inf where a query sees nothing.
void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads);

}  // namespace attn
