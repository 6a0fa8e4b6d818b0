// Recording of the ops of core. record_op() is like custom_op() in var.h, but a backward can pass a
// gradient on without a copy. Only the .cc files of ops include this header.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// Receives the gradient of one input from the backward of an op. If needed(), the backward may call
// one of give(), sum() and target(), once. The memory of different slots never overlaps, even where
// two inputs are the same Var.
class GradSlot {
 public:
  GradSlot(Tensor* gradient, Shape shape) : gradient_(gradient), shape_(shape) {}
  bool needed() const { return gradient_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  void give(Tensor gradient);  // stored if it is the first gradient, else added
  Tensor& sum();               // an unshared tensor, to which the gradient must be added
  // An unshared tensor. If accumulate is set to true, the gradient must be added to it; otherwise
  // the gradient must overwrite all of it.
  Tensor& target(bool& accumulate);

 private:
  Tensor* gradient_;
  Shape shape_;
};

// A backward function owns its argument `gradient`. It may overwrite an unshared() gradient and
// give it to an input.
using Backward = Function<void(Tensor gradient, std::span<GradSlot> inputs)>;
Var record_op(Tensor value, std::span<const Var> inputs, Backward backward);

}  // namespace attn
