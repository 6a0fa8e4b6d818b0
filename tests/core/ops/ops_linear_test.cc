// Matrix products as ops: of two matrices of each head, and of rows with weights.

#include <cmath>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_linear_test {
namespace {

// Products against three loops in double: every transpose, batching, sharing and edge; counted
// work.

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

// Linear, plain and to or from heads, against loops in double and against the ops that they stand
// for; sizes at and beside the edges of tiles and panels.

// `terms` products of numbers of size 1 in any order: 10·√terms roundings, and a few for the rest.
double close_to(int64_t terms) {
  return (50 * std::sqrt(static_cast<double>(terms)) + 10) * static_cast<double>(kEpsilon);
}

void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); i++)
    ASSERT_LE(std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])), tolerance) << i;
}

// x·w + bias and all its gradients for the seed g, by definition.
void expect_linear(int64_t rows, int64_t in, int64_t out) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << in << " x " << out);
  const Tensor x = random_tensor({rows, in}, 1), w = random_tensor({in, out}, 2),
               b = random_tensor({out}, 3), g = random_tensor({rows, out}, 4);
  const std::vector<Var> leaves = {Var(x, true), Var(w, true), Var(b, true)};
  const double before = counters().flops;
  const Var y = linear(leaves[0], leaves[1], leaves[2]);
  const double products = 2.0 * static_cast<double>(rows * in * out);
  EXPECT_EQ(counters().flops - before, products);
  y.backward(g);
  EXPECT_EQ(counters().flops - before, 3 * products);
  const auto at = [](const Tensor& t, int64_t i) { return static_cast<double>(t[i]); };
  const auto expect = [](const Tensor& got, int64_t i, double expected, int64_t terms) {
    EXPECT_LE(std::fabs(static_cast<double>(got[i]) - expected), close_to(terms)) << i;
  };
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < out; j++) {
      double total = at(b, j);
      for (int64_t k = 0; k < in; k++) total += at(x, i * in + k) * at(w, k * out + j);
      expect(y.value(), i * out + j, total, in);
    }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < in; k++) {
      double total = 0;
      for (int64_t j = 0; j < out; j++) total += at(g, i * out + j) * at(w, k * out + j);
      expect(leaves[0].grad(), i * in + k, total, out);
    }
  for (int64_t k = 0; k < in; k++)
    for (int64_t j = 0; j < out; j++) {
      double total = 0;
      for (int64_t i = 0; i < rows; i++) total += at(x, i * in + k) * at(g, i * out + j);
      expect(leaves[1].grad(), k * out + j, total, rows);
    }
  for (int64_t j = 0; j < out; j++) {
    double total = 0;
    for (int64_t i = 0; i < rows; i++) total += at(g, i * out + j);
    expect(leaves[2].grad(), j, total, rows);
  }
}

TEST(OpsLinear, FollowsItsDefinitionAtEveryEdge) {
  for (const int64_t rows : {0, 1, 5, 6, 7, 191, 192, 193}) expect_linear(rows, 7, 5);
  for (const int64_t in : {1, 63, 64, 65, 255, 256, 257}) expect_linear(9, in, 3);
  for (const int64_t out : {1, 15, 16, 17, 63, 64, 65, 130}) expect_linear(13, 4, out);
  expect_linear(400, 70, 90);
}

TEST(OpsLinear, GradientsAgainstDifferences) {
  const Tensor x = random_tensor({2, 9, 6}, 1), w = random_tensor({6, 5}, 2),
               b = random_tensor({5}, 3);
  expect_gradients([](const std::vector<Var>& in) { return linear(in[0], in[1], in[2]); },
                   {x, w, b}, {.elements = 108});
  expect_gradients([](const std::vector<Var>& in) { return linear(in[0], in[1], Var()); }, {x, w});
  expect_gradients([](const std::vector<Var>& in) { return linear(in[0], in[0], Var()); },
                   {random_tensor({6, 6}, 4)});
}

TEST(OpsLinear, WrongShapesThrow) {
  const Var x(random_tensor({2, 9, 6}, 1)), w(random_tensor({6, 5}, 2)), b(random_tensor({5}, 3));
  EXPECT_THROW(linear(x, b, {}), Error);
  EXPECT_THROW(linear(w, w, {}), Error);
  EXPECT_THROW(linear(x, w, Var(random_tensor({6}, 4))), Error);
}

TEST(OpsLinear, EmptyInnerDimensionGivesTheBias) {
  const Tensor b = random_tensor({4}, 1);
  const Tensor y = linear(Var(Tensor({3, 0})), Var(Tensor({0, 4})), Var(b)).value();
  for (int64_t i = 0; i < y.size(); i++) EXPECT_EQ(y[i], b[i % 4]);
  const Tensor zeros = linear(Var(Tensor({3, 0})), Var(Tensor({0, 4})), {}).value();
  for (const real v : zeros.values()) EXPECT_EQ(v, real(0));
}

TEST(OpsLinear, OnlyWhatIsWantedIsCounted) {
  const Var x(random_tensor({10, 4}, 1)), w(random_tensor({4, 3}, 2), true);
  const Var y = linear(x, w, {});
  const double before = counters().flops;
  y.backward(random_tensor({10, 3}, 3));
  EXPECT_EQ(counters().flops - before, 2.0 * 10 * 4 * 3);
  EXPECT_FALSE(x.grad().defined());
}

TEST(OpsLinear, NotANumberSpreadsOverItsRow) {
  const Tensor x = random_tensor({200, 8}, 1);
  x[150 * 8 + 3] = std::numeric_limits<real>::quiet_NaN();
  const Tensor y = linear(Var(x), Var(random_tensor({8, 70}, 2)), {}).value();
  for (int64_t i = 0; i < y.size(); i++) ASSERT_EQ(std::isnan(y[i]), i / 70 == 150) << i;
}

// The fused op against the ops it replaces, values and gradients.
using Op = std::function<Var(const std::vector<Var>&)>;
void expect_same(const Op& fused, const Op& composed, const std::vector<Tensor>& inputs,
                 double tolerance) {
  std::vector<Tensor> results[2];
  for (const bool is_fused : {true, false}) {
    std::vector<Var> leaves;
    for (const Tensor& input : inputs) leaves.emplace_back(input, true);
    const Var y = (is_fused ? fused : composed)(leaves);
    y.backward(random_tensor(y.shape(), 99));
    results[is_fused].push_back(y.value());
    for (const Var& leaf : leaves) results[is_fused].push_back(leaf.grad());
  }
  for (size_t i = 0; i < results[0].size(); i++) {
    SCOPED_TRACE(i);
    expect_close(results[1][i], results[0][i], tolerance);
  }
}

TEST(OpsLinear, ToHeadsIsLinearThenSplit) {
  const auto expect = [](int64_t len, int64_t in_dim, int64_t heads, int64_t dim) {
    SCOPED_TRACE(::testing::Message() << len << ", " << in_dim << ", " << heads << " x " << dim);
    expect_same(
        [=](const std::vector<Var>& in) { return linear_to_heads(in[0], in[1], heads); },
        [=](const std::vector<Var>& in) { return split_heads(linear(in[0], in[1], {}), heads); },
        {random_tensor({3, len, in_dim}, 1), random_tensor({in_dim, heads * dim}, 2)},
        close_to(3 * len + in_dim));
  };
  for (const int64_t len : {1, 7, 191, 200})
    for (const int64_t heads : {1, 2, 4}) expect(len, 6, heads, 12 / heads);
  for (const int64_t in_dim : {64, 65})  // straight into the heads, and by way of a tile
    for (const int64_t dim : {16, 24, 32, 64, 80, 128}) expect(10, in_dim, 3, dim);
  expect_gradients([](const std::vector<Var>& in) { return linear_to_heads(in[0], in[1], 2); },
                   {random_tensor({2, 5, 3}, 1), random_tensor({3, 4}, 2)});
  const Var x(random_tensor({2, 5, 3}, 1)), w(random_tensor({3, 4}, 2));
  EXPECT_THROW(linear_to_heads(x, w, 3), Error);
  EXPECT_THROW(linear_to_heads(x, Var(random_tensor({4, 4}, 2)), 2), Error);
}

TEST(OpsLinear, FromHeadsIsMergeThenLinear) {
  for (const int64_t len : {1, 7, 193})
    for (const int64_t heads : {1, 3}) {
      const std::vector<Tensor> inputs = {random_tensor({2, heads, len, 4}, 1),
                                          random_tensor({heads * 4, 5}, 2),
                                          random_tensor({2, len, 5}, 3)};
      expect_same([](const std::vector<Var>& in) { return linear_from_heads(in[0], in[1], in[2]); },
                  [](const std::vector<Var>& in) {
                    return add(linear(merge_heads(in[0]), in[1], {}), in[2]);
                  },
                  inputs, close_to(2 * len));
      expect_same([](const std::vector<Var>& in) { return linear_from_heads(in[0], in[1]); },
                  [](const std::vector<Var>& in) { return linear(merge_heads(in[0]), in[1], {}); },
                  {inputs[0], inputs[1]}, close_to(2 * len));
    }
  expect_gradients(
      [](const std::vector<Var>& in) { return linear_from_heads(in[0], in[1], in[2]); },
      {random_tensor({2, 2, 5, 3}, 1), random_tensor({6, 4}, 2), random_tensor({2, 5, 4}, 3)});
  const Var x(random_tensor({2, 2, 5, 3}, 1)), w(random_tensor({6, 4}, 2));
  EXPECT_THROW(linear_from_heads(x, w, Var(random_tensor({2, 5, 3}, 3))), Error);
  EXPECT_THROW(linear_from_heads(x, Var(random_tensor({5, 4}, 2))), Error);
}

// Gradients that are there already are added to, in heads too.
TEST(OpsLinear, GradientsOfTwoUsesAddUp) {
  expect_gradients(
      [](const std::vector<Var>& in) {
        return add(linear_to_heads(in[0], in[1], 2), linear_to_heads(in[0], in[2], 2));
      },
      {random_tensor({2, 5, 3}, 1), random_tensor({3, 4}, 2), random_tensor({3, 4}, 3)});
  expect_gradients(
      [](const std::vector<Var>& in) {
        return add(linear_from_heads(in[0], in[1]), linear_from_heads(in[0], in[2]));
      },
      {random_tensor({2, 2, 5, 3}, 1), random_tensor({6, 4}, 2), random_tensor({6, 4}, 3)});
}

TEST(OpsLinear, ThreadsChangeOnlyTheLastBits) {
  const Tensor x = random_tensor({1000, 64}, 1), w = random_tensor({64, 96}, 2),
               b = random_tensor({96}, 3), g = random_tensor({1000, 96}, 4);
  const auto run = [&](int count) {
    set_threads(count);
    const std::vector<Var> in = {Var(x, true), Var(w, true), Var(b, true)};
    const Var y = linear(in[0], in[1], in[2]);
    y.backward(g);
    set_threads(1);
    return std::vector<Tensor>{y.value(), in[0].grad(), in[1].grad(), in[2].grad()};
  };
  const auto one = run(1), three = run(3), again = run(3);
  for (size_t t = 0; t < one.size(); t++) {
    expect_close(one[t], three[t], close_to(1000));
    for (int64_t i = 0; i < one[t].size(); i++) ASSERT_EQ(three[t][i], again[t][i]);
  }
}

}  // namespace
}  // namespace attn::ops_linear_test
