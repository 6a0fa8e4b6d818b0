// Products against three loops in double: every transpose, batching, sharing and edge; counted
// work.
#include <cmath>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_matmul_test {
namespace {

// op(a_i) · op(b_i) by definition, the operand with fewer matrices repeated.
std::vector<double> slow_product(const Tensor& a, const Tensor& b, bool ta, bool tb,
                                 int64_t batch) {
  const int64_t m = a.dim(ta ? -1 : -2), k = a.dim(ta ? -2 : -1), n = b.dim(tb ? -2 : -1);
  const int64_t a_size = m * k, b_size = k * n;
  std::vector<double> out;
  for (int64_t s = 0; s < batch; s++) {
    const real* x = a.data() + (s * a_size) % a.size();
    const real* y = b.data() + (s * b_size) % b.size();
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double total = 0;
        for (int64_t l = 0; l < k; l++)
          total += static_cast<double>(x[ta ? l * m + i : i * k + l]) *
                   static_cast<double>(y[tb ? j * k + l : l * n + j]);
        out.push_back(total);
      }
  }
  return out;
}

void expect_product(const Shape& a_shape, const Shape& b_shape, bool ta, bool tb, int64_t batch) {
  SCOPED_TRACE(::testing::Message() << a_shape.str() << ta << " x " << b_shape.str() << tb);
  const Tensor a = random_tensor(a_shape, 1), b = random_tensor(b_shape, 2);
  const double before = counters().flops;
  const Tensor y = matmul(Var(a), Var(b), ta, tb).value();
  const int64_t inner = a.dim(ta ? -2 : -1);
  EXPECT_EQ(counters().flops - before, 2.0 * static_cast<double>(y.size() * inner));
  const std::vector<double> expected = slow_product(a, b, ta, tb, batch);
  ASSERT_EQ(y.size(), static_cast<int64_t>(expected.size()));
  const double close = 10 * std::sqrt(static_cast<double>(inner)) * static_cast<double>(kEpsilon);
  for (int64_t i = 0; i < y.size(); i++)
    ASSERT_NEAR(static_cast<double>(y[i]), expected[static_cast<size_t>(i)], close * 5) << i;
  expect_gradients([=](const std::vector<Var>& in) { return matmul(in[0], in[1], ta, tb); }, {a, b},
                   {.elements = 24});
}

Shape matrices(std::initializer_list<int64_t> leading, int64_t rows, int64_t cols, bool turned) {
  Shape shape;
  for (const int64_t dim : leading) shape = shape.appended(dim);
  return shape.appended(turned ? cols : rows).appended(turned ? rows : cols);
}

TEST(OpsMatmul, EveryTransposeAndSharing) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      expect_product(matrices({}, 5, 7, ta), matrices({}, 7, 3, tb), ta, tb, 1);
      expect_product(matrices({4}, 5, 7, ta), matrices({4}, 7, 3, tb), ta, tb, 4);
      expect_product(matrices({2, 3}, 5, 7, ta), matrices({2, 3}, 7, 3, tb), ta, tb, 6);
      expect_product(matrices({2, 3}, 5, 7, ta), matrices({}, 7, 3, tb), ta, tb, 6);   // b shared
      expect_product(matrices({2, 3}, 5, 7, ta), matrices({3}, 7, 3, tb), ta, tb, 6);  // b per head
      expect_product(matrices({}, 5, 7, ta), matrices({2, 3}, 7, 3, tb), ta, tb, 6);   // a shared
      expect_product(matrices({3}, 5, 7, ta), matrices({2, 3}, 7, 3, tb), ta, tb, 6);  // a per head
      expect_product(matrices({2}, 33, 65, ta), matrices({2}, 65, 49, tb), ta, tb, 2);
    }
}

TEST(OpsMatmul, EveryEdgeOfTilesPanelsAndBlocks) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      for (const int64_t m : {1, 4, 5, 6, 7, 23, 24, 25})
        expect_product(matrices({}, m, 9, ta), matrices({}, 9, 70, tb), ta, tb, 1);
      for (const int64_t n : {1, 15, 16, 17, 63, 64, 65, 129})
        expect_product(matrices({2}, 30, 3, ta), matrices({2}, 3, n, tb), ta, tb, 2);
      for (const int64_t k : {1, 255, 256, 257, 513})
        expect_product(matrices({2}, 26, k, ta), matrices({2}, k, 66, tb), ta, tb, 2);
      expect_product(matrices({}, 770, 3, ta), matrices({}, 3, 5, tb), ta, tb, 1);
    }
}

TEST(OpsMatmul, SameInputTwice) {
  expect_gradients([](const std::vector<Var>& in) { return matmul(in[0], in[0], false, true); },
                   {random_tensor({2, 4, 5}, 3)});
}

TEST(OpsMatmul, WrongShapesThrow) {
  const Var a(random_tensor({2, 3, 4}, 1));
  EXPECT_THROW(matmul(a, Var(random_tensor({2, 3, 4}, 2))), Error);
  EXPECT_THROW(matmul(a, Var(random_tensor({3, 4, 5}, 2))), Error);
  EXPECT_THROW(matmul(a, Var(random_tensor({4, 5}, 2)), true), Error);
  EXPECT_THROW(matmul(a, Var(random_tensor({4, 5}, 2)), false, true), Error);
  EXPECT_THROW(matmul(a, Var(random_tensor({4}, 2))), Error);
}

TEST(OpsMatmul, EmptyInnerDimensionGivesZeros) {
  const Tensor y = matmul(Var(Tensor({2, 3, 0})), Var(Tensor({0, 4}))).value();
  ASSERT_EQ(y.shape(), Shape({2, 3, 4}));
  for (const real v : y.values()) EXPECT_EQ(v, real(0));
  EXPECT_EQ(matmul(Var(Tensor({2, 0, 3})), Var(Tensor({3, 4}))).shape(), Shape({2, 0, 4}));
}

TEST(OpsMatmul, ThreadsShareTheRowsOfAFewProducts) {
  set_threads(3);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      expect_product(matrices({}, 200, 90, ta), matrices({}, 90, 70, tb), ta, tb, 1);
      expect_product(matrices({2}, 200, 90, ta), matrices({2}, 90, 70, tb), ta, tb, 2);
      expect_product(matrices({}, 5, 1000, ta), matrices({}, 1000, 300, tb), ta, tb, 1);
    }
  set_threads(1);
}

TEST(OpsMatmul, ThreadsSplitWithoutChangingTheAnswer) {
  const Tensor a = random_tensor({8, 70, 64}, 1), b = random_tensor({8, 64, 90}, 2);
  const Tensor w = random_tensor({64, 200}, 3);
  const auto run = [&](int count) {
    set_threads(count);
    const Var x(a, true), y(b, true), z(w, true);
    const Var product = add(sum(square(matmul(x, y))), sum(square(linear(x, z, Var()))));
    product.backward();
    set_threads(1);
    return std::vector<Tensor>{product.value(), x.grad(), y.grad(), z.grad()};
  };
  const auto one = run(1), three = run(3), again = run(3);
  for (size_t t = 0; t < one.size(); t++)
    for (int64_t i = 0; i < one[t].size(); i++) {
      ASSERT_EQ(three[t][i], again[t][i]);
      const double expected = static_cast<double>(one[t][i]);
      ASSERT_NEAR(static_cast<double>(three[t][i]), expected,
                  200 * static_cast<double>(kEpsilon) * (10 + std::fabs(expected)));
    }
}

}  // namespace
}  // namespace attn::ops_matmul_test
