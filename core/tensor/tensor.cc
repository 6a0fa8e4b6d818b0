// Shapes and tensors; see tensor.h.
#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/recycled.h"

namespace attn {
namespace {

constexpr int64_t kGrain = 1 << 16;  // elements a thread should have to be worth waking

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) {
  ATTN_CHECK(dims.size() <= dims_.size(), "a shape has at most 4 dimensions, got {}", dims.size());
  for (const int64_t dim : dims) {
    ATTN_CHECK(dim >= 0, "a dimension of a shape is {}", dim);
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
}

int64_t Shape::operator[](int i) const {
  const int at = i < 0 ? i + rank_ : i;
  ATTN_CHECK(at >= 0 && at < rank_, "dimension {} of shape {}", i, str());
  return dims_[static_cast<size_t>(at)];
}

int64_t Shape::size() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; i++) product *= dims_[static_cast<size_t>(i)];
  return product;
}

Shape Shape::with(int i, int64_t dim) const {
  const int at = i < 0 ? i + rank_ : i;
  ATTN_CHECK(at >= 0 && at < rank_ && dim >= 0, "dimension {} := {} of shape {}", i, dim, str());
  Shape result = *this;
  result.dims_[static_cast<size_t>(at)] = dim;
  return result;
}

Shape Shape::appended(int64_t dim) const {
  ATTN_CHECK(rank_ < 4 && dim >= 0, "cannot append {} to shape {}", dim, str());
  Shape result = *this;
  result.dims_[static_cast<size_t>(result.rank_++)] = dim;
  return result;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int i = 0; i < rank_; i++)
    text += fmt::format("{}{}", i ? ", " : "", dims_[static_cast<size_t>(i)]);
  return text + "]";
}

Tensor::Tensor(Shape shape)
    : shape_(shape),
      storage_(std::allocate_shared<Block>(Recycled<Block>(),
                                           static_cast<size_t>(shape.size()) * sizeof(real),
                                           MemoryScope::current())) {}

Tensor Tensor::zeros(Shape shape) { return full(shape, 0); }

Tensor Tensor::full(Shape shape, real value) {
  Tensor result(shape);
  result.fill(value);
  return result;
}

Tensor Tensor::of(Shape shape, std::span<const double> values) {
  ATTN_CHECK(static_cast<int64_t>(values.size()) == shape.size(), "{} values for shape {}",
             values.size(), shape.str());
  Tensor result(shape);
  std::transform(values.begin(), values.end(), result.data(),
                 [](double value) { return static_cast<real>(value); });
  return result;
}

Tensor Tensor::over(Shape shape, real* data, std::shared_ptr<const void> owner) {
  Tensor result;
  result.shape_ = shape;
  result.storage_ = std::allocate_shared<Block>(
      Recycled<Block>(), data, static_cast<size_t>(shape.size()) * sizeof(real), std::move(owner));
  return result;
}

Tensor Tensor::normal(Shape shape, Rng rng, double scale) {
  Tensor result(shape);
  for (real& value : result.values()) value = static_cast<real>(scale * rng.normal());
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  ATTN_CHECK(shape.size() == size(), "cannot reshape {} to {}", shape_.str(), shape.str());
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor result(shape_);
  result.copy_from(*this);
  return result;
}

void Tensor::fill(real value) const {
  const KernelMark mark(Part::elementwise);
  parallel_for(size(), kGrain, [this, value](int64_t begin, int64_t end) {
    std::fill(data() + begin, data() + end, value);
  });
}

void Tensor::add(const Tensor& other) const {
  ATTN_CHECK(shape_ == other.shape_, "cannot add {} to {}", other.shape_.str(), shape_.str());
  const KernelMark mark(Part::elementwise);
  parallel_for(size(), kGrain, [&](int64_t begin, int64_t end) {
    real* const to = data();
    const real* const from = other.data();
    for (int64_t i = begin; i < end; i++) to[i] += from[i];
  });
}

void Tensor::copy_from(const Tensor& other) const {
  ATTN_CHECK(shape_ == other.shape_, "cannot copy {} to {}", other.shape_.str(), shape_.str());
  const KernelMark mark(Part::elementwise);
  parallel_for(size(), kGrain, [&](int64_t begin, int64_t end) {
    if (data() != other.data())
      std::memcpy(data() + begin, other.data() + begin,
                  static_cast<size_t>(end - begin) * sizeof(real));
  });
}

}  // namespace attn
