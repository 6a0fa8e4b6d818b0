// The rules by which a witness has fallen and a row is noisy, on both sides of each bound.
#include <gtest/gtest.h>

#include "harness/run/noisy.h"

namespace attn::noisy_test {
namespace {

using Noises = std::vector<Noise>;

TEST(Noisy, AWitnessFallsBelowAPartOfTheBest) {
  const Witness best{.flops_per_s = 100, .copy_bytes_per_s = 10};
  EXPECT_FALSE(fell({.flops_per_s = 86, .copy_bytes_per_s = 10}, best, true));
  EXPECT_TRUE(fell({.flops_per_s = 84, .copy_bytes_per_s = 10}, best, true));
  EXPECT_TRUE(fell({.flops_per_s = 84, .copy_bytes_per_s = 10}, best, false));
  EXPECT_TRUE(fell({.flops_per_s = 100, .copy_bytes_per_s = 8.4}, best, true));
  EXPECT_FALSE(fell({.flops_per_s = 100, .copy_bytes_per_s = 1}, best, false))
      << "what is bound by arithmetic does not wait for memory";
}

TEST(Noisy, RowsAreMarkedByRule) {
  const Disturbance quiet{.seconds = 2, .involuntary_switches = 100, .stolen_s = 0.15};
  EXPECT_EQ(noise_of(false, quiet, 1, 4), Noises());
  EXPECT_EQ(noise_of(true, quiet, 1, 4), Noises({Noise::witness}));
  Disturbance found = quiet;
  found.stolen_s = 0.17;  // of 8 seconds, over 2 %
  EXPECT_EQ(noise_of(false, found, 1, 4), Noises({Noise::steal}));
  EXPECT_EQ(noise_of(false, found, 1, 8), Noises()) << "of 16 seconds";
  found = quiet;
  found.involuntary_switches = 102;
  EXPECT_EQ(noise_of(false, found, 1, 4), Noises({Noise::switches}));
  EXPECT_EQ(noise_of(false, found, 2, 4), Noises()) << "of two threads";
  found.stolen_s = std::nullopt;
  EXPECT_EQ(noise_of(false, found, 2, 4), Noises());
  EXPECT_EQ(noise_of(false, {.seconds = 1e-3, .involuntary_switches = 1}, 1, 1), Noises());
}

}  // namespace
}  // namespace attn::noisy_test
