// How the ops of core record themselves: as custom_op in var.h, but gradients are handed over
// rather than added where possible. Included by .cc files of ops only.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// Where an op's backward leaves the gradient of one input. At most one of the calls below, once,
// while needed(). Those of several inputs never overlap, even where the inputs are one Var.
class GradSlot {
 public:
  GradSlot(Tensor* gradient, Shape shape) : gradient_(gradient), shape_(shape) {}
  bool needed() const { return gradient_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  void give(Tensor gradient);  // kept as it is when it is the first, else added
  Tensor& sum();               // zero-filled or partly summed, unshared: add into it
  Tensor& target(
      bool& accumulate);  // unshared; accumulate: add into it, otherwise overwrite all of it

 private:
  Tensor* gradient_;
  Shape shape_;
};

// `backward` owns the gradient it is called with: where that is unshared() it may be overwritten
// and given on.
using Backward = Function<void(Tensor gradient, std::span<GradSlot> inputs)>;
Var record_op(Tensor value, std::span<const Var> inputs, Backward backward);

}  // namespace attn
