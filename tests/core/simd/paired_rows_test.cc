// Pairs of features on every instruction set, at every length of a tail, against the standard
// library in double.
#include "core/simd/paired_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/rng.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::paired_rows_test {
namespace {

using PairedRows = OnEveryIsa;

constexpr int64_t kRows = 3;

std::vector<real> numbers(int64_t cols, int64_t stride, double scale) {
  std::vector<real> x(static_cast<size_t>(kRows * stride), real(7));
  Rng random = rng(7, "numbers");
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      x[static_cast<size_t>(i * stride + j)] = static_cast<real>(scale * random.normal());
  return x;
}

TEST_F(PairedRows, SinesAndCosines) {
  each([&] {
    for (const int64_t cols : {1, 3, 8, 15, 16, 17, 33})
      for (const double scale : {0.1, 1.0, 30.0, 1000.0}) {
        const int64_t stride = 2 * cols + 1;
        const std::vector<real> x = numbers(cols, stride, scale);
        std::vector<real> out = x;
        const real factors[kRows] = {1, real(0.5), real(-3)};
        sin_cos_rows(kRows, cols, out.data(), stride, factors, real(0.25));
        for (int64_t i = 0; i < kRows; ++i) {
          const auto at = [&](int64_t j) { return static_cast<size_t>(i * stride + j); };
          for (int64_t j = 0; j < cols; ++j) {
            // The product is rounded once, as in the kernel.
            const double y = static_cast<double>(factors[i] * x[at(j)]);
            EXPECT_NEAR(static_cast<double>(out[at(j)]), std::sin(y) / 4, kEpsilon / 2) << y;
            EXPECT_NEAR(static_cast<double>(out[at(cols + j)]), std::cos(y) / 4, kEpsilon / 2) << y;
          }
          EXPECT_EQ(out[at(2 * cols)], 7);
        }
      }
  });
}

TEST_F(PairedRows, HugeAnglesStayInRangeAndNanStays) {
  each([&] {
    std::vector<real> x = {std::numeric_limits<real>::quiet_NaN(), real(1e20), real(-3e9), 0, 0, 0};
    const real one = 1;
    sin_cos_rows(1, 3, x.data(), 6, &one, 1);
    EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[3]));
    for (const size_t i : {size_t{1}, size_t{2}, size_t{4}, size_t{5}})
      EXPECT_TRUE(std::abs(x[i]) <= 1 + kEpsilon) << x[i];
  });
}

TEST_F(PairedRows, SoftmaxesOfBothSigns) {
  each([&] {
    for (const int64_t cols : {1, 3, 8, 15, 16, 17, 33})
      for (const double scale : {0.1, 1.0, 30.0, 1e4}) {
        const int64_t stride = 2 * cols + 1;
        const std::vector<real> x = numbers(cols, stride, scale);
        std::vector<real> out = x;
        softmax_pair_rows(kRows, cols, out.data(), stride);
        for (int64_t i = 0; i < kRows; ++i)
          for (const int sign : {1, -1}) {
            const auto at = [&](int64_t j) { return static_cast<size_t>(i * stride + j); };
            double top = -INFINITY, sum = 0;
            const auto logit = [&](int64_t j) { return sign * static_cast<double>(x[at(j)]); };
            for (int64_t j = 0; j < cols; ++j) top = std::max(top, logit(j));
            for (int64_t j = 0; j < cols; ++j) sum += std::exp(logit(j) - top);
            for (int64_t j = 0; j < cols; ++j)
              EXPECT_NEAR(static_cast<double>(out[at(sign > 0 ? j : cols + j)]),
                          std::exp(logit(j) - top) / sum, 8 * kEpsilon);
            EXPECT_EQ(out[at(2 * cols)], 7);
          }
      }
  });
}

}  // namespace
}  // namespace attn::paired_rows_test
