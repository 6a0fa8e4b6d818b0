// BFloat16Tensor: an array like Tensor (tensor.h) with numbers of 16 bits. It is storage alone:
// kernels read it, or it is widened to a Tensor. Copies share the storage.
#pragma once

#include <memory>

#include "core/base/bfloat16.h"
#include "core/base/memory.h"
#include "core/tensor/tensor.h"

namespace attn {

class BFloat16Tensor {
 public:
  BFloat16Tensor() = default;            // undefined: no storage
  explicit BFloat16Tensor(Shape shape);  // uninitialised, counted under MemoryScope::current()
  // Over memory that belongs to `owner`, without a copy, as Tensor::over().
  static BFloat16Tensor over(Shape shape, BFloat16* data, std::shared_ptr<const void> owner);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t size() const { return shape_.size(); }
  BFloat16* data() const { return static_cast<BFloat16*>(storage_ ? storage_->data() : nullptr); }

 private:
  Shape shape_;
  std::shared_ptr<Block> storage_;
};

// Each number rounded to the nearest bfloat16, as to_bfloat16() does. Bound by memory.
BFloat16Tensor rounded(const Tensor& x);
// The same numbers as `real`; exact.
Tensor widened(const BFloat16Tensor& x);
// Repeats each head of x [batch, heads, len, dim] `times` times, as repeat_heads() of ops_heads.h.
BFloat16Tensor repeat_heads(const BFloat16Tensor& x, int64_t times);

}  // namespace attn
