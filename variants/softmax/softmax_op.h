// The op of every tiled softmax attention, for those that state the problem themselves.
#pragma once

#include "core/autograd/var.h"
#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

// Sizes and mask of an attention with these options. Error where the shapes do not fit.
SoftmaxProblem softmax_problem(const Shape& q, const Shape& k, const Shape& v,
                               const SoftmaxOptions& options);

// softmax_forward(), and softmax_backward() where gradients are recorded. `bias_source` is what
// problem.bias was made of, undefined without a bias.
Var softmax_op(const SoftmaxProblem& problem, const Var& q, const Var& k, const Var& v,
               const Var& bias_source = {});

}  // namespace attn
