// Ops that put rows together: sums, norms and losses.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_norm_test {
namespace {

// Sums and means against plain loops in double, and their gradients.

constexpr double kCloseSums = 50 * static_cast<double>(kEpsilon);

TEST(OpsReduce, WholeTensor) {
  const Tensor x = random_tensor({7, 1501}, 1);
  double total = 0;
  for (const real v : x.values()) total += static_cast<double>(v);
  EXPECT_NEAR(static_cast<double>(sum(Var(x)).value()[0]), total, kCloseSums * 100);
  EXPECT_NEAR(static_cast<double>(mean(Var(x)).value()[0]), total / (7 * 1501), kCloseSums);
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
      ASSERT_NEAR(static_cast<double>(sums[row]), total, kCloseSums);
      ASSERT_NEAR(static_cast<double>(means[row]), total / static_cast<double>(n), kCloseSums);
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
      ASSERT_NEAR(static_cast<double>(y[b * 5 + j]), head / count, kCloseSums);
      ASSERT_NEAR(static_cast<double>(all[b * 5 + j]), whole / 4, kCloseSums);
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

// Softmax, layer norm and embedding against their definitions in double, at the ends of the range,
// and their gradients.

constexpr double kClose = 20 * static_cast<double>(kEpsilon);

TEST(OpsNorm, SoftmaxFollowsItsDefinition) {
  for (const int64_t n : {1, 5, 16, 40, 67}) {
    const Tensor x = random_tensor({2, 3, n}, 1, 3);
    const Tensor y = softmax(Var(x)).value();
    for (int64_t row = 0; row < 6; row++) {
      double total = 0;
      for (int64_t j = 0; j < n; j++) total += std::exp(static_cast<double>(x[row * n + j]));
      for (int64_t j = 0; j < n; j++)
        ASSERT_NEAR(static_cast<double>(y[row * n + j]),
                    std::exp(static_cast<double>(x[row * n + j])) / total, kClose);
    }
    expect_gradients([](const std::vector<Var>& in) { return softmax(in[0]); }, {x});
  }
}

TEST(OpsNorm, SoftmaxOfHiddenAndHugeEntries) {
  const Tensor x = Tensor::full({3, 18}, -kInfinity);
  x[18 + 2] = 1;
  x[18 + 17] = 1;
  for (int64_t j = 36; j < 54; j++) x[j] = j == 40 ? real(1e30) : real(-1e30);
  const Var in(x, true);
  const Var y = softmax(in);
  y.backward(random_tensor({3, 18}, 2));
  for (int64_t j = 0; j < 18; j++) {
    EXPECT_EQ(y.value()[j], real(0));
    EXPECT_EQ(in.grad()[j], real(0));
    EXPECT_EQ(y.value()[18 + j], j == 2 || j == 17 ? real(0.5) : real(0));
    EXPECT_EQ(y.value()[36 + j], j == 4 ? real(1) : real(0));
  }
  for (const real g : in.grad().values()) EXPECT_TRUE(std::isfinite(g));
}

TEST(OpsNorm, LayerNormFollowsItsDefinition) {
  for (const int64_t n : {1, 6, 16, 64, 83}) {
    const Tensor x = random_tensor({3, 5, n}, 3, 2), gain = random_tensor({n}, 4),
                 bias = random_tensor({n}, 5);
    const Tensor y = layer_norm(Var(x), Var(gain), Var(bias), 1e-3).value();
    for (int64_t row = 0; row < 15; row++) {
      double mean = 0, variance = 0;
      for (int64_t j = 0; j < n; j++)
        mean += static_cast<double>(x[row * n + j]) / static_cast<double>(n);
      for (int64_t j = 0; j < n; j++)
        variance +=
            std::pow(static_cast<double>(x[row * n + j]) - mean, 2) / static_cast<double>(n);
      for (int64_t j = 0; j < n; j++) {
        const double unit =
            (static_cast<double>(x[row * n + j]) - mean) / std::sqrt(variance + 1e-3);
        ASSERT_NEAR(static_cast<double>(y[row * n + j]),
                    unit * static_cast<double>(gain[j]) + static_cast<double>(bias[j]),
                    kClose * 10);
      }
    }
    expect_gradients(
        [](const std::vector<Var>& in) { return layer_norm(in[0], in[1], in[2], 1e-3); },
        {x, gain, bias});
  }
}

TEST(OpsNorm, LayerNormOnThreadsAgrees) {
  const Tensor x = random_tensor({301, 16}, 6), gain = random_tensor({16}, 7),
               seed = random_tensor({301, 16}, 8);
  const auto run = [&](int count) {
    set_threads(count);
    const std::vector<Var> in = {Var(x, true), Var(gain, true), Var(gain, true)};
    layer_norm(in[0], in[1], in[2]).backward(seed);
    set_threads(1);
    return std::vector<Tensor>{in[0].grad(), in[1].grad(), in[2].grad()};
  };
  const auto one = run(1), two = run(2);
  for (size_t t = 0; t < 3; t++)
    for (int64_t i = 0; i < one[t].size(); i++)
      ASSERT_NEAR(one[t][i], two[t][i], 100 * kEpsilon * (1 + std::fabs(one[t][i])));
}

TEST(OpsNorm, LayerNormWrongShapesThrow) {
  const Var x(random_tensor({2, 3}, 1)), good(random_tensor({3}, 1)), bad(random_tensor({2}, 1));
  EXPECT_THROW(layer_norm(x, bad, good), Error);
  EXPECT_THROW(layer_norm(x, good, bad), Error);
  EXPECT_THROW(softmax(Var(Tensor(Shape()))), Error);
}

TEST(OpsNorm, ScaleRows) {
  const Tensor a = random_tensor({2, 3, 5}, 1), factors = random_tensor({2, 3}, 2);
  const Tensor y = scale_rows(Var(a), Var(factors)).value();
  for (int64_t i = 0; i < a.size(); i++) ASSERT_EQ(y[i], a[i] * factors[i / 5]);
  expect_gradients([](const std::vector<Var>& in) { return scale_rows(in[0], in[1]); },
                   {a, factors});
  EXPECT_THROW(scale_rows(Var(a), Var(random_tensor({3}, 2))), Error);
  EXPECT_THROW(scale_rows(Var(a), Var(random_tensor({2, 5}, 2))), Error);
}

TEST(OpsNorm, RowNormIsTheEuclideanNormOfEachRow) {
  for (const int64_t n : {1, 5, 16, 67}) {
    const Tensor x = random_tensor({2, 3, n}, 10);
    const Tensor y = row_norm(Var(x)).value();
    ASSERT_EQ(y.shape(), Shape({2, 3, 1}));
    for (int64_t row = 0; row < 6; row++) {
      double total = 0;
      for (int64_t j = 0; j < n; j++) total += std::pow(static_cast<double>(x[row * n + j]), 2);
      ASSERT_NEAR(static_cast<double>(y[row]), std::sqrt(total), kClose * (1 + total));
    }
    expect_gradients([](const std::vector<Var>& in) { return row_norm(in[0]); }, {x});
    // What it is for: rows of length 1.
    expect_gradients([](const std::vector<Var>& in) { return divide(in[0], row_norm(in[0])); },
                     {x});
  }
  EXPECT_THROW(row_norm(Var(Tensor(Shape()))), Error);
}

TEST(OpsNorm, RowNormOfZerosHasNoGradient) {
  const Tensor x = random_tensor({2, 4}, 11);
  for (int64_t j = 0; j < 4; j++) x[j] = 0;
  const Var in(x, true);
  const Var y = row_norm(in);
  y.backward(Tensor::full({2, 1}, 1));
  EXPECT_EQ(y.value()[0], real(0));
  for (int64_t j = 0; j < 4; j++) EXPECT_EQ(in.grad()[j], real(0));
  for (int64_t j = 4; j < 8; j++) EXPECT_NEAR(in.grad()[j], x[j] / y.value()[1], kClose);
}

TEST(OpsNorm, Embedding) {
  const Tensor table = random_tensor({5, 3}, 9);
  const std::vector<int32_t> ids = {4, 0, 4, 1, 4, 3};
  const Tensor y = embedding(Var(table), ids, {2, 3}).value();
  ASSERT_EQ(y.shape(), Shape({2, 3, 3}));
  for (size_t i = 0; i < ids.size(); i++)
    for (int64_t j = 0; j < 3; j++)
      ASSERT_EQ(y[static_cast<int64_t>(i) * 3 + j], table[ids[i] * 3 + j]);
  expect_gradients(
      [&](const std::vector<Var>& in) {
        return embedding(in[0], ids, {2, 3});
      },
      {table});
  EXPECT_THROW(embedding(Var(table), ids, {2, 2}), Error);
  EXPECT_THROW(embedding(Var(table), std::vector<int32_t>{5}, {1}), Error);
  EXPECT_THROW(embedding(Var(table), std::vector<int32_t>{-1}, {1}), Error);
}

// Losses against their definitions in double, with ignored targets, and their gradients.

TEST(OpsLoss, CrossEntropyIsTheMeanOverCountedRows) {
  const Tensor x = random_tensor({2, 3, 21}, 1, 2);
  const std::vector<int32_t> targets = {0, -1, 20, 7, -1, 7};
  double total = 0;
  for (int64_t row = 0; row < 6; row++) {
    if (targets[static_cast<size_t>(row)] < 0) continue;
    double sum = 0;
    for (int64_t j = 0; j < 21; j++) sum += std::exp(static_cast<double>(x[row * 21 + j]));
    total += std::log(sum) - static_cast<double>(x[row * 21 + targets[static_cast<size_t>(row)]]);
  }
  EXPECT_NEAR(static_cast<double>(cross_entropy(Var(x), targets).value()[0]), total / 4,
              10 * static_cast<double>(kEpsilon));
  expect_gradients([&](const std::vector<Var>& in) { return cross_entropy(in[0], targets); }, {x},
                   {.elements = 126});
}

TEST(OpsLoss, CrossEntropyOfNothingIsZero) {
  const Var x(random_tensor({2, 4}, 2), true);
  const Var loss = cross_entropy(x, std::vector<int32_t>{-1, -1});
  EXPECT_EQ(loss.value()[0], real(0));
  loss.backward();
  for (const real g : x.grad().values()) EXPECT_EQ(g, real(0));
}

TEST(OpsLoss, CrossEntropyOfHugeLogitsIsFinite) {
  const Var x(Tensor::of({1, 3}, std::vector<double>{1e4, -1e4, 0}), true);
  const Var loss = cross_entropy(x, std::vector<int32_t>{1});
  EXPECT_NEAR(static_cast<double>(loss.value()[0]), 2e4, 1e-2);
  loss.backward();
  EXPECT_EQ(x.grad()[0], real(1));
  EXPECT_EQ(x.grad()[1], real(-1));
}

TEST(OpsLoss, CrossEntropyWrongTargetsThrow) {
  const Var x(random_tensor({2, 4}, 2));
  EXPECT_THROW(cross_entropy(x, std::vector<int32_t>{0}), Error);
  EXPECT_THROW(cross_entropy(x, std::vector<int32_t>{0, 4}), Error);
  EXPECT_THROW(cross_entropy(x, std::vector<int32_t>{0, -2}), Error);
}

TEST(OpsLoss, MeanSquaredError) {
  const Tensor x = random_tensor({3, 7}, 3), target = random_tensor({3, 7}, 4);
  double total = 0;
  for (int64_t i = 0; i < 21; i++)
    total += std::pow(static_cast<double>(x[i]) - static_cast<double>(target[i]), 2) / 21;
  EXPECT_NEAR(static_cast<double>(mean_squared_error(Var(x), target).value()[0]), total,
              10 * static_cast<double>(kEpsilon));
  expect_gradients([&](const std::vector<Var>& in) { return mean_squared_error(in[0], target); },
                   {x});
  EXPECT_THROW(mean_squared_error(Var(x), random_tensor({7, 3}, 4)), Error);
}

}  // namespace
}  // namespace attn::ops_norm_test
