// The gradient of a leaf that a backward may not have reached.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// Shares the memory of grad(); zeros of the leaf's shape where there is none.
inline Tensor grad_or_zeros(const Var& leaf) {
  return leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape());
}

}  // namespace attn
