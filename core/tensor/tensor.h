// Tensor: a contiguous, row-major, 64-byte-aligned array of `real` with at most 4 dimensions.
// Copies share the storage; clone() copies it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.h"
#include "core/base/real.h"
#include "core/base/rng.h"

namespace attn {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  int rank() const { return rank_; }
  int64_t operator[](int i) const;  // negative i counts from the end: [-1] is the last
  int64_t size() const;             // product; 1 for rank 0
  bool operator==(const Shape&) const = default;
  Shape with(int i, int64_t dim) const;  // a copy with one dimension changed
  Shape appended(int64_t dim) const;     // a copy with one more dimension at the end
  std::string str() const;               // "[2, 4, 128, 64]"

 private:
  std::array<int64_t, 4> dims_{};
  int rank_ = 0;
};

class Tensor {
 public:
  Tensor() = default;            // undefined: no storage
  explicit Tensor(Shape shape);  // uninitialised, counted under MemoryScope::current()
  static Tensor zeros(Shape shape);
  static Tensor full(Shape shape, real value);
  static Tensor of(Shape shape, std::span<const double> values);
  // Over memory that belongs to `owner`, without a copy: shape.size() numbers at `data`, which the
  // pool does not count. The only tensors that may not be aligned to 64 bytes.
  static Tensor over(Shape shape, real* data, std::shared_ptr<const void> owner);
  // Values from N(0, scale²); the same numbers in float and double.
  static Tensor normal(Shape shape, Rng rng, double scale = 1);

  bool defined() const { return storage_ != nullptr; }
  // Whether no other Tensor shares the storage.
  bool unshared() const { return storage_.use_count() == 1; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t size() const { return shape_.size(); }
  real* data() const { return static_cast<real*>(storage_ ? storage_->data() : nullptr); }
  std::span<real> values() const { return {data(), static_cast<size_t>(size())}; }
  real& operator[](int64_t i) const { return data()[i]; }

  Tensor reshaped(Shape shape) const;  // shares the storage; the sizes must agree
  Tensor clone() const;
  void fill(real value) const;
  void add(const Tensor& other) const;  // elementwise, in place; shapes must agree
  void copy_from(const Tensor& other) const;

 private:
  Shape shape_;
  std::shared_ptr<Block> storage_;
};

}  // namespace attn
