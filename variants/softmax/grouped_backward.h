// The backward pass of softmax attention within groups of positions, chunk by chunk: rows are
// gathered, their gradients scattered back. Shared by groups a stride apart and by dilated
// segments.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/tensor/tensor.h"
#include "variants/softmax/regroup.h"
#include "variants/softmax/softmax_backward.h"

namespace attn {

// problem_of(which): the attention of these groups. saved: q, k, v, the output and its log-sum-exp.
template <class ProblemOf>
void grouped_backward(const Regroup& regroup, Span groups, const ProblemOf& problem_of,
                      const std::array<Tensor, 5>& saved, const Tensor& grad_out,
                      std::span<Tensor> grads) {
  const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &log_sum = saved[4];
  in_chunks(groups, regroup.chunk(kBackwardArrays, q.dim(3)), [&](Span which) {
    const Tensor gq = regroup.gather(q, which);
    std::array<Tensor, 3> own;
    for (size_t i = 0; i < 3; ++i)
      if (grads[i].defined()) own[i] = Tensor::zeros(gq.shape());
    softmax_backward(problem_of(which), gq, regroup.gather(k, which), regroup.gather(v, which),
                     regroup.gather(out, which), regroup.gather(log_sum, which, kInfinity),
                     regroup.gather(grad_out, which), own);
    for (size_t i = 0; i < 3; ++i)
      if (grads[i].defined()) regroup.scatter_add(own[i], which, grads[i]);
  });
}

}  // namespace attn
