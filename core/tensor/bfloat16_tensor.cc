// Arrays of bfloat16 and their conversion; see bfloat16_tensor.h. One pass over memory each.
#include "core/tensor/bfloat16_tensor.h"

#include <algorithm>
#include <utility>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/recycled.h"

namespace attn {
namespace {

constexpr int64_t kGrainOfConversion = 1 << 16;  // numbers that are worth waking a thread

}  // namespace

BFloat16Tensor::BFloat16Tensor(Shape shape)
    : shape_(shape),
      storage_(std::allocate_shared<Block>(Recycled<Block>(),
                                           static_cast<size_t>(shape.size()) * sizeof(BFloat16),
                                           MemoryScope::current())) {}

BFloat16Tensor BFloat16Tensor::over(Shape shape, BFloat16* data,
                                    std::shared_ptr<const void> owner) {
  BFloat16Tensor result;
  result.shape_ = shape;
  result.storage_ = std::allocate_shared<Block>(
      Recycled<Block>(), data, static_cast<size_t>(shape.size()) * sizeof(BFloat16),
      std::move(owner));
  return result;
}

BFloat16Tensor rounded(const Tensor& x) {
  const KernelMark mark(Part::elementwise);
  const BFloat16Tensor result(x.shape());
  parallel_for(x.size(), kGrainOfConversion, [&](int64_t begin, int64_t end) {
    const real* const from = x.data();
    BFloat16* const to = result.data();
    for (int64_t i = begin; i < end; i++) to[i] = to_bfloat16(static_cast<float>(from[i]));
  });
  return result;
}

Tensor widened(const BFloat16Tensor& x) {
  const KernelMark mark(Part::elementwise);
  Tensor result(x.shape());
  parallel_for(x.size(), kGrainOfConversion, [&](int64_t begin, int64_t end) {
    const BFloat16* const from = x.data();
    real* const to = result.data();
    for (int64_t i = begin; i < end; i++) to[i] = to_float(from[i]);
  });
  return result;
}

BFloat16Tensor repeat_heads(const BFloat16Tensor& x, int64_t times) {
  ATTN_CHECK(x.shape().rank() == 4 && times >= 1, "repeat_heads: {} times {}", x.shape().str(),
             times);
  if (times == 1) return x;
  const int64_t matrix = x.dim(2) * x.dim(3), count = x.dim(0) * x.dim(1);
  BFloat16Tensor out(x.shape().with(1, x.dim(1) * times));
  for (int64_t i = 0; i < count * times; ++i)
    std::copy_n(x.data() + i / times * matrix, matrix, out.data() + i * matrix);
  return out;
}

}  // namespace attn
