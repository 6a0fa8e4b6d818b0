// The rows of feature maps on every instruction set, at every length of a tail, against the
// standard library in double.
#include "core/simd/feature_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/simd/isa.h"

namespace attn::feature_rows_test {
namespace {

constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();

class FeatureRows : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { hold_isa(GetParam()); }
  void TearDown() override { hold_isa(before_); }

 private:
  std::string before_ = isa();
};

std::vector<real> numbers(int64_t size, double scale) {
  Rng random = rng(7, "numbers");
  std::vector<real> x;
  for (int64_t i = 0; i < size; ++i) x.push_back(static_cast<real>(scale * random.normal()));
  return x;
}

TEST_P(FeatureRows, EluPlusOne) {
  for (const int64_t size : {1, 3, 15, 16, 17, 100})
    for (const double scale : {0.1, 1.0, 30.0}) {
      const std::vector<real> x = numbers(size, scale);
      std::vector<real> out(static_cast<size_t>(size) + 1, real(7));
      elu_plus_one_row(size, x.data(), out.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double value = static_cast<double>(x[i]);
        const double want = value > 0 ? value + 1 : std::exp(value);
        EXPECT_NEAR(static_cast<double>(out[i]) / want, 1, 2 * kEpsilon) << value;
      }
      EXPECT_EQ(out.back(), 7);
    }
}

TEST_P(FeatureRows, EluAtTheEnds) {
  std::vector<real> x = {kNaN, kInfinity, -kInfinity, real(-2000), 0, real(1e30)};
  elu_plus_one_row(static_cast<int64_t>(x.size()), x.data(), x.data());
  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_EQ(x[1], kInfinity);
  EXPECT_EQ(x[2], 0);
  EXPECT_EQ(x[3], 0);
  EXPECT_EQ(x[4], 1);
  EXPECT_EQ(x[5], real(1e30));
}

TEST_P(FeatureRows, ExponentialsBelowTheTop) {
  for (const int64_t cols : {1, 3, 15, 16, 17, 33, 64, 100})
    for (const double scale : {0.1, 1.0, 40.0}) {
      constexpr int64_t kRows = 3;
      const int64_t stride = cols + 2;
      const std::vector<real> from = numbers(kRows * stride, scale);
      std::vector<real> x = from, row_max(kRows);
      exp_rows(kRows, cols, x.data(), stride, real(0.7), row_max.data());
      for (int64_t row = 0; row < kRows; ++row) {
        real largest = -kInfinity;
        for (int64_t j = 0; j < cols; ++j)
          largest = std::max(largest, from[static_cast<size_t>(row * stride + j)]);
        EXPECT_EQ(row_max[static_cast<size_t>(row)], largest);
        for (int64_t j = 0; j < stride; ++j) {
          const auto at = static_cast<size_t>(row * stride + j);
          const double exponent = static_cast<double>(real(0.7)) *
                                  (static_cast<double>(from[at]) - static_cast<double>(largest));
          if (j >= cols || from[at] == largest) {
            EXPECT_EQ(x[at], j >= cols ? from[at] : 1);  // behind the row; the largest
          } else if (exponent > -80) {  // the exponent is rounded twice, relative to itself
            EXPECT_NEAR(static_cast<double>(x[at]) / std::exp(exponent), 1,
                        (2 - 2 * exponent) * kEpsilon);
          }
        }
      }
    }
}

TEST_P(FeatureRows, NanStaysInItsRow) {
  std::vector<real> x = {1, kNaN, 2, 0, 1, 2}, row_max(2);
  exp_rows(2, 3, x.data(), 3, 1, row_max.data());
  EXPECT_TRUE(std::isnan(x[1]));
  EXPECT_TRUE(std::isfinite(x[3]) && std::isfinite(x[4]));
  EXPECT_EQ(x[5], 1);
}

TEST_P(FeatureRows, DotProducts) {
  for (const int64_t cols : {1, 15, 16, 17, 31, 33, 64, 100}) {
    const std::vector<real> x = numbers(4 * cols, 1), y = numbers(cols, 2);
    std::vector<real> dots(4);
    dot_rows(4, cols, x.data(), cols, y.data(), dots.data());
    for (int64_t i = 0; i < 4; ++i) {
      double want = 0, size = 0;
      for (int64_t j = 0; j < cols; ++j) {
        const double term = static_cast<double>(x[static_cast<size_t>(i * cols + j)]) *
                            static_cast<double>(y[static_cast<size_t>(j)]);
        want += term;
        size += std::abs(term);
      }
      EXPECT_NEAR(static_cast<double>(dots[static_cast<size_t>(i)]), want, 8 * kEpsilon * size);
    }
  }
}

// Numbers that fill no vector, one, and more; behind each row lie numbers that stay.
TEST_P(FeatureRows, PairsAndTheirGradients) {
  for (const int64_t f : {1, 2, 3, 7, 8, 9, 15, 16, 17, 33}) {
    const int64_t rows = 3, size = 1 + f + f * (f + 1) / 2, stride = size + 1;
    const std::vector<real> given = numbers(rows * stride, 1);
    std::vector<real> phi = given, grad = numbers(2 * rows * stride, 1);
    grad.erase(grad.begin(), grad.begin() + rows * stride);
    const std::vector<real> before = grad;
    pair_rows(rows, f, real(0.5), phi.data(), stride);
    pair_gradient_rows(rows, f, real(0.5), phi.data(), grad.data(), stride);
    for (int64_t i = 0; i < rows; ++i) {
      const real *const x = &given[static_cast<size_t>(i * stride)], *y = x + 1;
      const real* const made = &phi[static_cast<size_t>(i * stride)];
      const real* const g = &before[static_cast<size_t>(i * stride)];
      std::vector<double> want(static_cast<size_t>(f));
      EXPECT_EQ(made[0], 1);
      EXPECT_EQ(made[size], x[size]);
      for (int64_t a = 0, at = 1 + f; a < f; ++a) {
        want[static_cast<size_t>(a)] += 0.5 * double(g[1 + a]);
        EXPECT_EQ(made[1 + a], real(0.5) * y[a]);
        for (int64_t b = a; b < f; ++b, ++at) {
          const double of_same = a == b ? std::sqrt(0.5) : 1, ya = 0.5 * double(y[a]),
                       yb = 0.5 * double(y[b]);
          EXPECT_NEAR(double(made[at]), of_same * ya * yb, 4 * kEpsilon * std::abs(ya * yb));
          want[static_cast<size_t>(a)] += 0.5 * of_same * double(g[at]) * yb;
          want[static_cast<size_t>(b)] += 0.5 * of_same * double(g[at]) * ya;
        }
      }
      for (int64_t a = 0; a < f; ++a)
        EXPECT_NEAR(double(grad[static_cast<size_t>(i * stride + a)]), want[static_cast<size_t>(a)],
                    200 * kEpsilon)
            << f;
      EXPECT_EQ(grad[static_cast<size_t>(i * stride + size)], g[size]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, FeatureRows, testing::ValuesIn(isas()));

}  // namespace
}  // namespace attn::feature_rows_test
