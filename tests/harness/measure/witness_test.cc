// The witness against the calibration of the machine, and the slowest of several threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/measure/calibrate.h"
#include "harness/measure/witness.h"

namespace attn::witness_test {
namespace {

TEST(Witness, RatesAreThoseOfTheMachine) {
  const WitnessStand stand(1);
  Witness best = stand.look();
  for (int i = 0; i < 20; i++) {  // tests run beside others: the best of some looks
    const Witness seen = stand.look();
    best.flops_per_s = std::max(best.flops_per_s, seen.flops_per_s);
    best.copy_bytes_per_s = std::max(best.copy_bytes_per_s, seen.copy_bytes_per_s);
  }
  const Calibration machine = calibrate(1);
  EXPECT_LT(best.flops_per_s, 1.1 * machine.fma_flops_per_s_one);
#ifndef ATTN_SANITIZED  // where a product is far from the peak
  EXPECT_GT(best.flops_per_s, 0.4 * machine.fma_flops_per_s_one);
#endif
  EXPECT_GT(best.copy_bytes_per_s, 0.3 * machine.copy_bytes_per_s_one)
      << "4 MiB, nearer than memory";
}

TEST(Witness, TheSlowestThreadCounts) {
  const Witness found = WitnessStand(2).look();
  EXPECT_GT(found.flops_per_s, 0);
  EXPECT_GT(found.copy_bytes_per_s, 0);
  const Witness slower = slower_of({.flops_per_s = 1, .copy_bytes_per_s = 4},
                                   {.flops_per_s = 2, .copy_bytes_per_s = 3});
  EXPECT_EQ(slower.flops_per_s, 1);
  EXPECT_EQ(slower.copy_bytes_per_s, 3);
}

}  // namespace
}  // namespace attn::witness_test
