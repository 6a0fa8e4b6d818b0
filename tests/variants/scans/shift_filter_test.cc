// The filter against plain sums in double, and its gradients.
#include "variants/scans/shift_filter.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::shift_filter_test {
namespace {

TEST(ShiftFilter, IsItsDefinition) {
  for (const int64_t len : {1, 3, 4, 50})
    for (const int64_t count : {1, 4, 64}) {
      const Tensor x = random_tensor({2, 3, len, 5}, 1), taps = random_tensor({3, count, 5}, 2),
                   skip = random_tensor({3, 5}, 3);
      const Counters before = counters();
      const Tensor y = shift_filter(Var(x), Var(taps), Var(skip)).value();
      EXPECT_NEAR(counters().flops - before.flops, 2 * 3 * 5 * shift_filter_flops(len, count), 0.5);
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t c = i % 5, t = i / 5 % len, head = i / 5 / len % 3;
        double sum = static_cast<double>(skip[head * 5 + c]) * static_cast<double>(x[i]);
        for (int64_t j = 0; j < count && j <= t; ++j)
          sum += static_cast<double>(taps[(head * count + j) * 5 + c]) *
                 static_cast<double>(x[i - j * 5]);
        ASSERT_NEAR(static_cast<double>(y[i]), sum, 1e3 * static_cast<double>(kEpsilon));
      }
    }
}

TEST(ShiftFilter, CountsEachTapThatAPositionSees) {
  for (const int64_t len : {1, 5, 9})
    for (const int64_t count : {1, 4, 12}) {
      double pairs = 0;
      for (int64_t t = 0; t < len; ++t) pairs += static_cast<double>(std::min(count, t + 1));
      EXPECT_EQ(shift_filter_flops(len, count), 2 * pairs);
    }
}

TEST(ShiftFilter, Gradients) {
  expect_gradients(
      [](const std::vector<Var>& in) { return shift_filter(in[0], in[1], in[2]); },
      {random_tensor({2, 2, 6, 3}, 1), random_tensor({2, 4, 3}, 2), random_tensor({2, 3}, 3)});
  EXPECT_THROW(shift_filter(Var(Tensor({2, 2, 6, 3})), Var(Tensor({2, 4, 4})), Var(Tensor({2, 3}))),
               Error);
}

}  // namespace
}  // namespace attn::shift_filter_test
