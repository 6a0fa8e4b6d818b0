// Numbers that do not depend on the machine: bfloat16's bits, a logarithm and the random streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/bfloat16.h"
#include "core/base/check.h"
#include "core/base/dtype.h"
#include "core/base/log2.h"
#include "core/base/rng.h"
#include "core/tensor/bfloat16_tensor.h"

namespace attn::numbers_test {
namespace {

// The logarithm without libm, against libm's.

TEST(Log2, IsThatOfTheLibraryToTheLastPlaces) {
  for (const double exact : {1.0, 2.0, 0.5, 1024.0, 0x1p-30})
    EXPECT_EQ(same_log2(exact), std::log2(exact)) << exact;
  Rng random = rng(1, "log2");
  for (int i = 0; i < 100'000; i++) {
    const double x = std::ldexp(random.uniform(0.5, 1), static_cast<int>(random.between(-60, 60)));
    const double wanted = std::log2(x);
    ASSERT_NEAR(same_log2(x), wanted, 4e-16 * std::max(1.0, std::abs(wanted))) << x;
  }
}

// Conversion to bfloat16 over all its 65536 patterns, against a rule written in double.

BFloat16 pattern(int bits) { return {static_cast<uint16_t>(bits)}; }
bool is_nan(int bits) { return (bits & 0x7fff) > 0x7f80; }
bool is_finite(int bits) { return (bits & 0x7fff) < 0x7f80; }

// The number of a pattern by its definition: sign, exponent, 7 digits behind the point.
double number_of(int bits) {
  const int exponent = bits >> 7 & 0xff, digits = bits & 0x7f;
  const double size =
      exponent == 0 ? std::ldexp(digits, -126 - 7) : std::ldexp(128 + digits, exponent - 127 - 7);
  return bits & 0x8000 ? -size : size;
}

TEST(BFloat16, EveryPatternIsTheNumberOfItsDefinition) {
  for (int bits = 0; bits < 0x10000; bits++) {
    const float x = to_float(pattern(bits));
    if (is_finite(bits)) {
      ASSERT_EQ(static_cast<double>(x), number_of(bits)) << bits;
      ASSERT_EQ(std::signbit(x), (bits & 0x8000) != 0) << bits;
    } else {
      ASSERT_EQ(std::isnan(x), is_nan(bits)) << bits;
      ASSERT_EQ(std::isinf(x), !is_nan(bits)) << bits;
    }
  }
}

TEST(BFloat16, EveryPatternComesBack) {
  for (int bits = 0; bits < 0x10000; bits++) {
    const BFloat16 back = to_bfloat16(to_float(pattern(bits)));
    // A NaN becomes a quiet one of the same sign.
    ASSERT_EQ(back.bits, is_nan(bits) ? bits | 0x40 : bits) << bits;
  }
}

TEST(BFloat16, NaNWhoseUpperHalfIsThatOfAnInfinityStaysNaN) {
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7f80ffffu, 0x7fffffffu, 0xffffffffu}) {
    const BFloat16 x = to_bfloat16(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(to_float(x))) << bits;
    EXPECT_EQ(x.bits >> 15, bits >> 31) << bits;
  }
}

// Between each two neighbours: the middle goes to the even one, everything else to the nearer one.
template <class Convert>
int wrong_roundings(const Convert& convert) {
  int wrong = 0;
  for (int sign : {0, 0x8000})
    for (int bits = 0; bits < 0x7f7f; bits++) {
      const int low = bits | sign, high = (bits + 1) | sign;
      const auto middle = static_cast<float>((number_of(low) + number_of(high)) / 2);  // exact
      const float down = std::nextafter(middle, to_float(pattern(low))),
                  up = std::nextafter(middle, to_float(pattern(high)));
      wrong += convert(middle).bits != (low % 2 == 0 ? low : high);
      wrong += convert(down).bits != low;
      wrong += convert(up).bits != high;
    }
  return wrong;
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(wrong_roundings([](float x) { return to_bfloat16(x); }), 0);
  // Truncation is wrong above each middle and at half of the middles.
  const auto truncated = [](float x) {
    return BFloat16{static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
  };
  EXPECT_EQ(wrong_roundings(truncated), 2 * (0x7f7f + 0x7f7f / 2));
}

TEST(BFloat16, BeyondTheLargestIsInfinite) {
  const float largest = to_float(pattern(0x7f7f));
  const auto limit = static_cast<float>(std::ldexp(255.5, 120));  // the middle to 2^128
  EXPECT_EQ(to_bfloat16(std::nextafter(limit, largest)).bits, 0x7f7f);
  EXPECT_EQ(to_bfloat16(limit).bits, 0x7f80);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::max()).bits, 0xff80);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::infinity()).bits, 0x7f80);
}

TEST(BFloat16, TheErrorIsAtMostItsBound) {
  Rng random = rng(1, "bfloat16");
  double worst = 0;
  for (int i = 0; i < 100000; i++) {
    const auto x = static_cast<float>(random.normal());
    worst = std::max(worst, std::abs(static_cast<double>(to_float(to_bfloat16(x))) - x) /
                                std::abs(static_cast<double>(x)));
  }
  EXPECT_LE(worst, kBFloat16Rounding);
  EXPECT_GT(worst, 0.9 * kBFloat16Rounding);
}

TEST(BFloat16Tensor, RoundsAndWidensEveryNumber) {
  const Tensor x = Tensor::normal({2, 3, 70001}, rng(2, "bfloat16"));  // of several threads
  const BFloat16Tensor small = rounded(x);
  const Tensor back = widened(small);
  for (int64_t i = 0; i < x.size(); i++) {
    ASSERT_EQ(small.data()[i], to_bfloat16(x[i]));
    ASSERT_EQ(back[i], to_float(small.data()[i]));
  }
}

TEST(BFloat16Tensor, CountsTwoBytesANumber) {
  const int64_t before = memory_use().live_total;
  const BFloat16Tensor x({4, 32});
  EXPECT_EQ(memory_use().live_total - before, 4 * 32 * size_of(Dtype::bfloat16));
}

// Random streams: golden bits from an independent implementation of xoshiro256** and splitmix64,
// ranges, moments, streams.

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
}  // namespace attn::numbers_test
