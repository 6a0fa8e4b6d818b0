// Var: a tensor with a gradient tape (reverse mode). Ops record how to push a gradient back;
// backward() runs them in reverse. Under NoGrad, and where no input requires a gradient, nothing is
// recorded and nothing is kept.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/base/function.h"
#include "core/base/no_grad.h"
#include "core/tensor/tensor.h"

namespace attn {

class GradSlot;  // see tape.h
struct Node;     // a value and, where it requires a gradient, its Record
struct Record;   // one recorded op; both are private to var.cc

class Var {
 public:
  Var() = default;                                         // undefined
  explicit Var(Tensor value, bool requires_grad = false);  // a leaf

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const;
  const Shape& shape() const { return value().shape(); }
  int64_t dim(int i) const { return shape()[i]; }
  bool requires_grad() const;
  const Tensor& grad()
      const;  // undefined Tensor until a backward reached this Var; kept on leaves only
  void zero_grad() const;  // fills an existing gradient with zeros, keeping its memory
  void set_value(const Tensor& value) const;  // leaves only; copies; shapes must agree

  // d(sum of elements · seed)/d(leaves) is added into each leaf's grad(). Without a seed this must
  // be a single element. The tape behind this Var is released while it runs; a second backward
  // through it is an Error.
  void backward() const;
  void backward(const Tensor& seed) const;

 private:
  friend Var record_op(Tensor, std::span<const Var>, Function<void(Tensor, std::span<GradSlot>)>);
  std::shared_ptr<Node> node_;
};

// A fused op: `value` was computed from `inputs`; `backward(grad_value, grads)` must ADD the
// gradient into grads[i] for each input that requires one. grads[i] is zero-filled or partly summed
// and has the input's shape; it is an undefined Tensor where input i requires no gradient. Tensors
// that `backward` captures are freed when the tape is. No two of grads overlap, even for one Var.
Var custom_op(Tensor value, std::initializer_list<Var> inputs,
              Function<void(const Tensor& grad_value, std::span<Tensor> grads)> backward);

// True when an op on these inputs would be recorded: lets a fused forward skip what only its
// backward needs.
bool recording(std::initializer_list<Var> inputs);
bool recording(std::span<const Var> inputs);

}  // namespace attn
