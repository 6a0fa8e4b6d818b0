// Dropout's share, scale and repeatability; padding that never leaks; the gradients of both.
#include <cmath>
#include <limits>

#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_mask_test {
namespace {

TEST(OpsMask, DropoutDropsTheShareAskedForAndScalesTheRest) {
  const Tensor x = Tensor::full({101, 1000}, 2);
  Rng random = rng(3, "dropout");
  const Tensor y = dropout(Var(x), 0.25, random).value();
  double kept = 0;
  for (const real v : y.values()) {
    ASSERT_TRUE(v == 0 || std::fabs(v - real(2 / 0.75)) <= 4 * kEpsilon) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 101000, 0.75, 0.007);  // five deviations of 0.00136
  Rng again = rng(3, "dropout");
  const Tensor same = dropout(Var(x), 0.25, again).value();
  for (int64_t i = 0; i < x.size(); i++) ASSERT_EQ(same[i], y[i]);
  EXPECT_EQ(dropout(Var(x), 0, again).value().data(), x.data());
  EXPECT_THROW(dropout(Var(x), 1, again), Error);
  EXPECT_THROW(dropout(Var(x), -0.1, again), Error);
}

// Decisions are drawn from 65536 numbers: a chance below half of one of them drops nothing.
TEST(OpsMask, DropoutWithTheSmallestChanceKeepsEverything) {
  Rng random = rng(4, "dropout");
  const Tensor y = dropout(Var(Tensor::full({1000, 1000}, real(1))), 1e-6, random).value();
  for (const real v : y.values()) ASSERT_GT(v, 0);
}

TEST(OpsMask, DropoutGradientUsesTheSameMask) {
  expect_gradients(
      [](const std::vector<Var>& in) {
        Rng random = rng(5, "dropout");
        return dropout(in[0], 0.4, random);
      },
      {random_tensor({7, 9}, 5)});
}

TEST(OpsMask, ZeroPaddingSelects) {
  const Tensor x = random_tensor({3, 2, 4, 5}, 6);
  const std::vector<int64_t> lengths = {4, 0, 3};
  const auto padded = [&](int64_t i) {
    return (i / 5) % 4 >= lengths[static_cast<size_t>(i / 40)];
  };
  expect_gradients([&](const std::vector<Var>& in) { return zero_padding(in[0], lengths); }, {x},
                   {.elements = 120});
  for (int64_t i = 0; i < x.size(); i++)
    if (padded(i)) x[i] = std::numeric_limits<real>::quiet_NaN();
  const Var in(x, true);
  const Var y = zero_padding(in, lengths);
  y.backward(Tensor::full(x.shape(), std::numeric_limits<real>::quiet_NaN()));
  for (int64_t i = 0; i < x.size(); i++) {
    ASSERT_EQ(y.value()[i], padded(i) ? real(0) : x[i]);
    ASSERT_EQ(std::isnan(in.grad()[i]), !padded(i));
  }
  EXPECT_EQ(zero_padding(in, {}).value().data(), x.data());
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2}), Error);
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2, 5}), Error);
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2, -1}), Error);
}

}  // namespace
}  // namespace attn::ops_mask_test
