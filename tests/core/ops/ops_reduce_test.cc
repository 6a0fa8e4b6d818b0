// Sums and means against plain loops in double, and their gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_reduce_test {
namespace {

constexpr double kClose = 50 * static_cast<double>(kEpsilon);

TEST(OpsReduce, WholeTensor) {
  const Tensor x = random_tensor({7, 1501}, 1);
  double total = 0;
  for (const real v : x.values()) total += static_cast<double>(v);
  EXPECT_NEAR(static_cast<double>(sum(Var(x)).value()[0]), total, kClose * 100);
  EXPECT_NEAR(static_cast<double>(mean(Var(x)).value()[0]), total / (7 * 1501), kClose);
  EXPECT_EQ(sum(Var(x)).value().size(), 1);
  expect_gradients([](const std::vector<Var>& in) { return sum(square(in[0])); },
                   {random_tensor({3, 5}, 2)});
  expect_gradients([](const std::vector<Var>& in) { return mean(square(in[0])); },
                   {random_tensor({3, 5}, 2)});
}

TEST(OpsReduce, LastDimension) {
  for (const int64_t n : {1, 7, 16, 33, 70}) {
    const Tensor x = random_tensor({2, 3, n}, 3);
    const Tensor sums = sum_last(Var(x)).value(), means = mean_last(Var(x)).value();
    ASSERT_EQ(sums.shape(), Shape({2, 3}));
    ASSERT_EQ(means.shape(), Shape({2, 3}));
    for (int64_t row = 0; row < 6; row++) {
      double total = 0;
      for (int64_t j = 0; j < n; j++) total += static_cast<double>(x[row * n + j]);
      ASSERT_NEAR(static_cast<double>(sums[row]), total, kClose);
      ASSERT_NEAR(static_cast<double>(means[row]), total / static_cast<double>(n), kClose);
    }
    expect_gradients([](const std::vector<Var>& in) { return sum_last(in[0]); }, {x});
    expect_gradients([](const std::vector<Var>& in) { return mean_last(in[0]); }, {x});
  }
  EXPECT_EQ(sum_last(Var(random_tensor({4}, 1))).shape(), Shape());
  EXPECT_THROW(mean_last(Var(Tensor({3, 0}))), Error);
}

TEST(OpsReduce, MeanPositions) {
  const Tensor x = random_tensor({3, 4, 5}, 4);
  const std::vector<int64_t> lengths = {4, 0, 2};
  const Tensor y = mean_positions(Var(x), lengths).value(),
               all = mean_positions(Var(x), {}).value();
  ASSERT_EQ(y.shape(), Shape({3, 5}));
  for (int64_t b = 0; b < 3; b++)
    for (int64_t j = 0; j < 5; j++) {
      double head = 0, whole = 0;
      for (int64_t i = 0; i < 4; i++) {
        const double v = static_cast<double>(x[(b * 4 + i) * 5 + j]);
        whole += v;
        if (i < lengths[static_cast<size_t>(b)]) head += v;
      }
      const double count = std::max(1.0, static_cast<double>(lengths[static_cast<size_t>(b)]));
      ASSERT_NEAR(static_cast<double>(y[b * 5 + j]), head / count, kClose);
      ASSERT_NEAR(static_cast<double>(all[b * 5 + j]), whole / 4, kClose);
    }
  expect_gradients([&](const std::vector<Var>& in) { return mean_positions(in[0], lengths); }, {x});
  expect_gradients([&](const std::vector<Var>& in) { return mean_positions(in[0], {}); }, {x});
  EXPECT_THROW(mean_positions(Var(x), std::vector<int64_t>{1}), Error);
  EXPECT_THROW(mean_positions(Var(x), std::vector<int64_t>{1, 2, 5}), Error);
  EXPECT_THROW(mean_positions(Var(random_tensor({3, 4}, 1)), {}), Error);
}

TEST(OpsReduce, PaddingNeverLeaks) {
  const Tensor x = random_tensor({1, 3, 2}, 5);
  x[4] = std::numeric_limits<real>::quiet_NaN();
  const Var in(x, true);
  const Var y = mean_positions(in, std::vector<int64_t>{2});
  y.backward(Tensor::full({1, 2}, 1));
  EXPECT_TRUE(std::isfinite(y.value()[0]));
  EXPECT_EQ(in.grad()[4], real(0));
}

}  // namespace
}  // namespace attn::ops_reduce_test
