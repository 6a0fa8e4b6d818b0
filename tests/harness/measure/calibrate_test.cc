// The measured peak lies above what a product reaches, by less than a factor of three, and
// follows the threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "core/simd/product.h"
#include "harness/measure/calibrate.h"

namespace attn::calibrate_test {
namespace {

double product_rate() {
  constexpr int64_t kSide = 320;
  const std::vector<real> a(kSide * kSide, real(0.5)), b = a;
  std::vector<real> c(kSide * kSide);
  double best = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 40; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    product(kSide, kSide, kSide, {a.data(), kSide, 1}, {b.data(), kSide}, c.data(), kSide);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * kSide * kSide * kSide / best;
}

#if defined(ATTN_SANITIZED) || !defined(__OPTIMIZE__)
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
  EXPECT_LE(fraction, 1.5);  // a neighbour may have slowed the calibration, but not the product
  EXPECT_GE(found.fma_flops_per_s_all, 0.25 * found.fma_flops_per_s_one);
  EXPECT_LE(found.fma_flops_per_s_all, 4 * found.fma_flops_per_s_one);
  EXPECT_GE(found.copy_bytes_per_s, 1e8);
  EXPECT_LE(found.copy_bytes_per_s, 1e13);
  EXPECT_LE(found.copy_bytes_per_s_one, found.copy_bytes_per_s);
  EXPECT_GE(found.copy_bytes_per_s_one, found.copy_bytes_per_s / 8);
}

TEST(PeakOf, FollowsTheThreadsUsed) {
  Calibration machine;
  machine.fma_flops_per_s_one = 100;
  machine.fma_flops_per_s_all = 350;
  machine.threads = 4;
  EXPECT_EQ(peak_of(machine, 1), 100);
  EXPECT_EQ(peak_of(machine, 2), 200);
  EXPECT_EQ(peak_of(machine, 4), 350);
  EXPECT_EQ(peak_of(machine, 8), 350);  // more threads than cores
  machine.fma_flops_per_s_all = 150;    // cores that share their units
  EXPECT_EQ(peak_of(machine, 2), 150);
}

TEST(BandwidthOf, FollowsTheThreadsUsed) {
  Calibration machine;
  machine.copy_bytes_per_s_one = 10;
  machine.copy_bytes_per_s = 25;
  machine.threads = 4;
  EXPECT_EQ(bandwidth_of(machine, 1), 10);
  EXPECT_EQ(bandwidth_of(machine, 2), 20);
  EXPECT_EQ(bandwidth_of(machine, 3), 25);  // two threads and a half saturate the memory
  EXPECT_EQ(bandwidth_of(machine, 8), 25);
}

}  // namespace
}  // namespace attn::calibrate_test
