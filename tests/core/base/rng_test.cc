// Random streams: golden bits from an independent implementation of xoshiro256** and splitmix64,
// ranges, moments, streams.
#include "core/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace attn::rng_test {
namespace {

void expect_bits(Rng stream, std::initializer_list<uint64_t> golden) {
  for (const uint64_t bits : golden) EXPECT_EQ(stream.bits(), bits);
}

TEST(Rng, GoldenBits) {
  expect_bits(Rng(0),
              {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c});
  expect_bits(Rng(12345),
              {0xbe6a36374160d49b, 0x214aaa0637a688c6, 0xf69d16de9954d388, 0x0c60048c4e96e033});
  expect_bits(rng(1, "weights", 3),
              {0x436104dece5875a7, 0x7cd3592a2e9a49e5, 0xa1fa00527f1a47cf, 0xef87e5aa47f4bbc1});
}

TEST(Rng, UniformTakesTheHighest53Bits) {
  Rng stream(42);
  for (const double numerator : {755370490430936.0, 3413550631330343.0, 6125286505004179.0})
    EXPECT_EQ(stream.uniform(), numerator / 9007199254740992.0);
}

TEST(Rng, StreamsDiffer) {
  EXPECT_NE(rng(1, "a").bits(), rng(2, "a").bits());
  EXPECT_NE(rng(1, "a").bits(), rng(1, "b").bits());
  EXPECT_NE(rng(1, "a", 0).bits(), rng(1, "a", 1).bits());
  EXPECT_EQ(rng(1, "a", 5).bits(), rng(1, "a", 5).bits());
}

TEST(Rng, IntegersCoverTheirRangeEvenly) {
  Rng stream(1);
  int counts[7] = {};
  for (int i = 0; i < 70000; i++) counts[stream.between(-3, 3) + 3]++;
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // five deviations of 93
  EXPECT_EQ(stream.below(1), 0u);
  EXPECT_EQ(stream.between(5, 5), 5);
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(),
                    kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_NE(stream.between(kLow, kHigh), stream.between(kLow, kHigh));
  EXPECT_THROW(stream.below(0), Error);
  EXPECT_THROW(stream.between(2, 1), Error);
}

TEST(Rng, MomentsOfTheDistributions) {
  Rng stream(2);
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourths = 0, uniforms = 0, coins = 0;
  for (int i = 0; i < kDraws; i++) {
    const double x = stream.normal(), u = stream.uniform(2, 4);
    ASSERT_TRUE(u >= 2 && u < 4);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    uniforms += u;
    coins += stream.coin();
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.016);  // five deviations each
  EXPECT_NEAR(squares / kDraws, 1, 0.023);
  EXPECT_NEAR(fourths / kDraws, 3, 0.16);
  EXPECT_NEAR(uniforms / kDraws, 3, 0.01);
  EXPECT_NEAR(coins / kDraws, 0.5, 0.008);
}

}  // namespace
}  // namespace attn::rng_test
