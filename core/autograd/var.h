// Var: a tensor with reverse-mode automatic differentiation. Each op records its backward function
// on a tape; backward() calls them in reverse order. Under NoGrad, or if no input requires a
// gradient, an op records nothing and keeps no tensors.
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
  // The gradient of a leaf; an undefined Tensor before a backward reached it.
  const Tensor& grad() const;
  void zero_grad() const;  // fills an existing gradient with zeros; its memory is kept
  void set_value(const Tensor& value) const;  // copies; for leaves; shapes must agree

  // Adds d(sum of elements · seed)/d(leaf) to grad() of each leaf. Without a seed, this Var must
  // have a single element. The call releases the tape; a second backward through it is an Error.
  void backward() const;
  void backward(const Tensor& seed) const;

 private:
  friend Var record_op(Tensor, std::span<const Var>, Function<void(Tensor, std::span<GradSlot>)>);
  std::shared_ptr<Node> node_;
};

// Records a fused op that computed `value` from `inputs`. backward(grad_value, grads) must ADD the
// gradient of each input to grads[i], which has the shape of the input. grads[i] is an undefined
// Tensor where input i requires no gradient. The tensors of `grads` never overlap, even where two
// inputs are the same Var. Tensors that `backward` captures are freed with the tape.
Var custom_op(Tensor value, std::initializer_list<Var> inputs,
              Function<void(const Tensor& grad_value, std::span<Tensor> grads)> backward);

// Whether an op on these inputs would be recorded. A fused forward can skip results that only its
// backward needs.
bool recording(std::initializer_list<Var> inputs);
bool recording(std::span<const Var> inputs);

}  // namespace attn
