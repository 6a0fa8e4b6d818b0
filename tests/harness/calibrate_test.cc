// The measured peak lies above what a product reaches, by less than a factor of three, and a
// fraction above 1 is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/eigen.h"
#include "harness/measure/measure.h"

namespace attn {
namespace {

double product_rate() {
  constexpr int64_t kSide = 320;
  const Matrix a = Matrix::Random(kSide, kSide), b = Matrix::Random(kSide, kSide);
  Matrix c(kSide, kSide);
  double best = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 40; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    c.noalias() = a * b;
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * kSide * kSide * kSide / best;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

TEST(Calibrate, AProductReachesAPlausiblePartOfThePeak) {
  if (kSlowBuild) GTEST_SKIP() << "rates mean nothing in this build";
  const Calibration found = calibrate(2);
  EXPECT_EQ(found.threads, 2);
  const double fraction = product_rate() / found.fma_flops_per_s_one;
  EXPECT_GE(fraction, 0.3);
  EXPECT_LE(fraction, 1.0);
  EXPECT_GE(found.fma_flops_per_s_all, 0.5 * found.fma_flops_per_s_one);
  EXPECT_LE(found.fma_flops_per_s_all, 2.5 * found.fma_flops_per_s_one);
  EXPECT_GE(found.copy_bytes_per_s, 1e8);
  EXPECT_LE(found.copy_bytes_per_s, 1e13);
}

TEST(PeakFraction, IsOfTheThreadsUsed) {
  Calibration machine;
  machine.fma_flops_per_s_one = 100;
  machine.fma_flops_per_s_all = 350;
  machine.threads = 4;
  EXPECT_DOUBLE_EQ(peak_fraction(50, machine, 1), 0.5);
  EXPECT_DOUBLE_EQ(peak_fraction(70, machine, 4), 0.2);
  EXPECT_DOUBLE_EQ(peak_fraction(50, machine, 2), 0.25);
  EXPECT_DOUBLE_EQ(peak_fraction(35, machine, 8), 0.1);  // more threads than cores
  EXPECT_THROW(peak_fraction(101, machine, 1), Error);
  EXPECT_THROW(peak_fraction(std::numeric_limits<double>::quiet_NaN(), machine, 1), Error);
}

}  // namespace
}  // namespace attn
