// fast_exp against the standard library, in both precisions, whatever the build.
#include "core/kernels/exp.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attn::exp_test {
namespace {

TEST(FastExp, WithinTwoUlpOverTheWholeRange) {
  for (double x = -87.3; x < 88.7; x += 0.00917) {
    const float f = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(f));
    ASSERT_LE(std::fabs(static_cast<double>(fast_exp(f)) / expected - 1), 1.2e-7) << f;
  }
  for (double x = -708; x < 709; x += 0.0917)
    ASSERT_LE(std::fabs(fast_exp(x) / std::exp(x) - 1), 4.5e-16) << x;
}

TEST(FastExp, Ends) {
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-88.0f), 0.0f);
  EXPECT_EQ(fast_exp(-INFINITY), 0.0f);
  EXPECT_EQ(fast_exp(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(fast_exp(NAN)));
  EXPECT_EQ(fast_exp(-709.0), 0.0);
  EXPECT_EQ(fast_exp(710.0), HUGE_VAL);
  EXPECT_TRUE(std::isnan(fast_exp(static_cast<double>(NAN))));
}

}  // namespace
}  // namespace attn::exp_test
