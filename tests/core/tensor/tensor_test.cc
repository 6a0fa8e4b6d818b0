// Shapes and tensors: sizes, sharing, copies, and what throws.
#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/tensor/bfloat16_tensor.h"

namespace attn::tensor_test {
namespace {

TEST(Shape, Dimensions) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape.str(), "[2, 3, 4]");
  EXPECT_EQ(shape.with(-2, 7), Shape({2, 7, 4}));
  EXPECT_EQ(shape.appended(5), Shape({2, 3, 4, 5}));
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ(Shape().str(), "[]");
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
}

TEST(Shape, WrongUseThrows) {
  const Shape shape = {2, 3, 4, 5};
  EXPECT_THROW(shape[4], Error);
  EXPECT_THROW(shape[-5], Error);
  EXPECT_THROW(shape.appended(1), Error);
  EXPECT_THROW(shape.with(4, 1), Error);
  EXPECT_THROW(Shape({1, 2, 3, 4, 5}), Error);
  EXPECT_THROW(Shape({-1}), Error);
}

TEST(Tensor, StorageIsSharedByCopiesAndNotByClones) {
  const Tensor a = Tensor::of({2, 2}, std::vector<double>{1, 2, 3, 4});
  EXPECT_TRUE(a.unshared());
  const Tensor copy = a, clone = a.clone(), flat = a.reshaped({4});
  EXPECT_FALSE(a.unshared());
  a[0] = 9;
  EXPECT_EQ(copy[0], real(9));
  EXPECT_EQ(flat[0], real(9));
  EXPECT_EQ(clone[0], real(1));
  EXPECT_EQ(flat.shape(), Shape({4}));
  EXPECT_THROW(a.reshaped({3}), Error);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(clone.data()) % 64, 0u);
}

TEST(Tensor, OverMemoryOfAnother) {
  const auto numbers = std::make_shared<std::vector<real>>(6, real(1));
  const int64_t live = memory_use().live_total;
  {
    const Tensor rows = Tensor::over({2, 3}, numbers->data(), numbers).reshaped({6});
    EXPECT_EQ(rows.data(), numbers->data());   // no copy
    EXPECT_EQ(memory_use().live_total, live);  // and not counted
    EXPECT_EQ(numbers.use_count(), 2);         // kept by the storage that both tensors share
    rows.fill(4);
    const Tensor copy = rows.clone();
    EXPECT_GT(memory_use().live_total, live);
    (*numbers)[0] = 5;
    EXPECT_EQ(copy[0], real(4));
  }
  EXPECT_EQ(numbers.use_count(), 1);
  EXPECT_EQ(*numbers, (std::vector<real>{5, 4, 4, 4, 4, 4}));
  EXPECT_THROW(Tensor::over({2}, numbers->data(), nullptr), Error);
}

TEST(Tensor, BFloat16IsReadWhereItIsToo) {
  const auto numbers = std::make_shared<std::vector<BFloat16>>(3, to_bfloat16(1.5F));
  const int64_t live = memory_use().live_total;
  const BFloat16Tensor over = BFloat16Tensor::over({3}, numbers->data(), numbers);
  EXPECT_EQ(over.data(), numbers->data());
  EXPECT_EQ(memory_use().live_total, live);
  (*numbers)[2] = to_bfloat16(-2.0F);
  EXPECT_EQ(widened(over)[0], real(1.5));
  EXPECT_EQ(widened(over)[2], real(-2));
}

TEST(Tensor, FillAddCopy) {
  const Tensor a = Tensor::full({3}, 2), b = Tensor::of({3}, std::vector<double>{1, 2, 3});
  a.add(b);
  EXPECT_EQ(a[2], real(5));
  a.copy_from(b);
  EXPECT_EQ(a[2], real(3));
  a.fill(0);
  EXPECT_EQ(a[2], real(0));
  EXPECT_THROW(a.add(Tensor({4})), Error);
  EXPECT_THROW(a.copy_from(Tensor({4})), Error);
  EXPECT_THROW(Tensor::of({2}, std::vector<double>{1}), Error);
}

TEST(Tensor, LargeOnesOnThreads) {
  set_threads(3);
  const Tensor a = Tensor::full({1000, 301}, 1), b = a.clone();
  a.add(b);
  set_threads(1);
  for (const real v : a.values()) ASSERT_EQ(v, real(2));
}

TEST(Tensor, UndefinedAndEmpty) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor().data(), nullptr);
  const Tensor empty({0, 3});
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE(empty.values().empty());
}

TEST(Tensor, NormalIsAFunctionOfItsStream) {
  const Tensor a = Tensor::normal({100}, rng(1, "a")), b = Tensor::normal({100}, rng(1, "a"), 2);
  double total = 0;
  for (int64_t i = 0; i < 100; i++) {
    ASSERT_NEAR(b[i], 2 * a[i], 1e-6);
    total += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  }
  EXPECT_NEAR(total / 100, 1, 0.5);
  EXPECT_NE(Tensor::normal({1}, rng(2, "a"))[0], a[0]);
}

}  // namespace
}  // namespace attn::tensor_test
