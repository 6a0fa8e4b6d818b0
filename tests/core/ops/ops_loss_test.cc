// Losses against their definitions in double, with ignored targets, and their gradients.
#include <cmath>

#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_loss_test {
namespace {

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
}  // namespace attn::ops_loss_test
