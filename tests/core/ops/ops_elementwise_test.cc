// Elementwise ops against the standard library in double, their broadcasting, and their gradients.
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_elementwise_test {
namespace {

using Pair = Var (*)(const Var&, const Var&);
using Single = Var (*)(const Var&);

Tensor positive(Shape shape, uint64_t index) {
  const Tensor t = random_tensor(shape, index);
  for (real& v : t.values()) v = std::fabs(v) + real(0.5);
  return t;
}

TEST(OpsElementwise, PairsFollowTheirFormula) {
  struct Case {
    Pair op;
    double (*formula)(double, double);
  };
  const Case cases[] = {{add, [](double p, double q) { return p + q; }},
                        {subtract, [](double p, double q) { return p - q; }},
                        {multiply, [](double p, double q) { return p * q; }},
                        {divide, [](double p, double q) { return p / q; }}};
  const Tensor a = random_tensor({2, 3, 5, 19}, 1);
  for (const Shape& shape : {Shape{2, 3, 5, 19}, Shape{3, 5, 19}, Shape{5, 19}, Shape{19}, Shape{1},
                             Shape{2, 3, 5, 1}}) {
    const Tensor b = positive(shape, 2);
    const int64_t along = shape == Shape{2, 3, 5, 1} ? 19 : 1;  // elements of `a` that share one
    for (const Case& c : cases) {
      const Tensor y = c.op(Var(a), Var(b)).value();
      ASSERT_EQ(y.shape(), a.shape());
      for (int64_t i = 0; i < a.size(); i++) {
        const double expected =
            c.formula(static_cast<double>(a[i]), static_cast<double>(b[i / along % b.size()]));
        ASSERT_NEAR(static_cast<double>(y[i]), expected,
                    4 * static_cast<double>(kEpsilon) * (1 + std::fabs(expected)));
      }
      expect_gradients([&c](const std::vector<Var>& in) { return c.op(in[0], in[1]); }, {a, b});
    }
  }
}

TEST(OpsElementwise, WrongShapesThrow) {
  const Var a(random_tensor({2, 3}, 1));
  for (const Pair op : {add, subtract, multiply, divide}) {
    EXPECT_THROW(op(a, Var(random_tensor({2}, 2))), Error);
    EXPECT_THROW(op(a, Var(random_tensor({3, 2}, 2))), Error);
    EXPECT_THROW(op(a, Var(random_tensor({2, 2, 3}, 2))), Error);
    EXPECT_THROW(op(a, Var(random_tensor({3, 1}, 2))), Error);
    EXPECT_THROW(op(a, Var(random_tensor({2, 1, 1}, 2))), Error);
    EXPECT_THROW(op(a, Var()), Error);
  }
}

TEST(OpsElementwise, SinglesFollowTheirFormula) {
  struct Case {
    const char* name;
    Single op;
    double (*formula)(double);
    bool needs_positive;
  };
  const Case cases[] = {
      {"exponential", exponential, [](double x) { return std::exp(x); }, false},
      {"logarithm", logarithm, [](double x) { return std::log(x); }, true},
      {"square_root", square_root, [](double x) { return std::sqrt(x); }, true},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
      {"reciprocal", reciprocal, [](double x) { return 1 / x; }, true},
      {"square", square, [](double x) { return x * x; }, false},
      {"relu", relu, [](double x) { return x > 0 ? x : 0; }, false},
      {"elu", elu, [](double x) { return x > 0 ? x : std::expm1(x); }, false},
      {"gelu", gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, false},
      {"tanh", attn::tanh, [](double x) { return std::tanh(x); }, false},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, false},
      {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor x = c.needs_positive ? positive({3, 37}, 4) : random_tensor({3, 37}, 4, 2);
    const Tensor y = c.op(Var(x)).value();
    for (int64_t i = 0; i < x.size(); i++) {
      const double expected = c.formula(static_cast<double>(x[i]));
      // the last bits of the exponent of fast_exp count x times
      const double close = 8 * static_cast<double>(kEpsilon) * (1 + std::fabs(expected));
      ASSERT_NEAR(static_cast<double>(y[i]), expected, close) << "at " << x[i];
    }
    expect_gradients([&c](const std::vector<Var>& in) { return c.op(in[0]); }, {x},
                     {.elements = 111});
  }
}

TEST(OpsElementwise, GeluAndItsSlopeHoldOverTheWholeRange) {
  const int64_t n = 4001;
  Tensor x({n});
  for (int64_t i = 0; i < n; i++) x[i] = static_cast<real>(-20 + 0.01 * static_cast<double>(i));
  const Var in(x, true);
  const Var y = gelu(in);
  y.backward(Tensor::full({n}, 1));
  for (int64_t i = 0; i < n; i++) {
    const double v = static_cast<double>(x[i]);
    const double below = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double slope = below + v * std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
    const double bound = kIsDouble ? 1e-14 : 3e-7;
    ASSERT_NEAR(static_cast<double>(y.value()[i]), v * below, bound * (1 + std::fabs(v))) << v;
    ASSERT_NEAR(static_cast<double>(in.grad()[i]), slope, bound * (1 + std::fabs(v))) << v;
  }
}

TEST(OpsElementwise, ExponentialAtTheEnds) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor y =
      exponential(Var(Tensor::of({4}, std::vector<double>{-inf, inf, std::nan(""), -1e4}))).value();
  EXPECT_EQ(y[0], real(0));
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], real(0));
}

TEST(OpsElementwise, SoftplusAtTheEnds) {
  const Var x(Tensor::of({4}, std::vector<double>{-1000, -80, 90, 1000}), true);
  const Var y = softplus(x);
  y.backward(Tensor::full({4}, 1));
  EXPECT_EQ(y.value()[0], real(0));
  EXPECT_NEAR(static_cast<double>(y.value()[1]) / std::exp(-80.0), 1, 1e-5);
  EXPECT_EQ(y.value()[2], real(90));
  EXPECT_EQ(y.value()[3], real(1000));
  EXPECT_EQ(x.grad()[0], real(0));
  EXPECT_NEAR(static_cast<double>(x.grad()[1]) / std::exp(-80.0), 1, 1e-5);
  EXPECT_EQ(x.grad()[2], real(1));
  EXPECT_EQ(x.grad()[3], real(1));
}

// The same number has the same bits wherever it stands in a tensor: vector loops and their tails
// agree.
TEST(OpsElementwise, BitsDoNotDependOnThePosition) {
  for (const Single op : {Single(exponential), Single(gelu), Single(elu), Single(sigmoid)}) {
    const Tensor y = op(Var(Tensor::full({67}, real(-0.7318)))).value();
    for (const real v : y.values()) ASSERT_EQ(v, y[0]);
  }
}

// Where threads share the rows, each row still meets its own number, forward and backward.
TEST(OpsElementwise, ColumnsOnThreads) {
  const ScopedThreads three_threads(3);
  const int64_t rows = 1001, n = 130;  // more elements than one thread would keep to itself
  const Var a(random_tensor({rows, n}, 5), true), b(positive({rows, 1}, 6), true);
  const Var y = divide(a, b);
  y.backward(Tensor::full({rows, n}, 1));
  for (int64_t row = 0; row < rows; row++) {
    double total = 0;
    for (int64_t j = 0; j < n; j++) {
      ASSERT_EQ(y.value()[row * n + j], a.value()[row * n + j] / b.value()[row]);
      total += static_cast<double>(a.value()[row * n + j]);
    }
    const double expected = -total / std::pow(static_cast<double>(b.value()[row]), 2);
    ASSERT_NEAR(static_cast<double>(b.grad()[row]), expected, 2000 * static_cast<double>(kEpsilon));
  }
}

TEST(OpsElementwise, ScaleAndShift) {
  const Tensor x = random_tensor({2, 5}, 3);
  const Tensor y = shift(scale(Var(x), -3), 2).value();
  for (int64_t i = 0; i < 10; i++) EXPECT_NEAR(y[i], -3 * x[i] + 2, 8 * kEpsilon);
  expect_gradients([](const std::vector<Var>& in) { return shift(scale(in[0], -3), 2); }, {x});
}

}  // namespace
}  // namespace attn::ops_elementwise_test
