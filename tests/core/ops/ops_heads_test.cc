// Rotary positions against the written-out rotation, their dot products, and repeated heads; both
// are linear, so that their gradients are their transposes.
#include "core/ops/ops_heads.h"

#include <gtest/gtest.h>

#include "variants/reference/scores.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::ops_heads_test {
namespace {

TEST(Rotate, EqualsTheRotationWrittenOut) {
  for (const int64_t dim : {1, 2, 5, 8})
    for (const int64_t first : {0, 3}) {
      const Tensor x = bridge::normal({2, 3, 7, dim}, "x");
      const Tensor got = rotate(Var(x), rotary_table(10, dim), first).value();
      const oracle::Array want = oracle::rotated(bridge::array_of(x), first);
      EXPECT_TRUE(bridge::relative_error(got, want.x) <= 4 * kEpsilon) << dim << " from " << first;
    }
}

// One row at every position: its dot products with another are functions of the difference.
TEST(Rotate, DotProductsDependOnTheDifferenceOfPositionsAlone) {
  constexpr int64_t kPlaces = 40, kDim = 8;
  const Tensor table = rotary_table(kPlaces, kDim);
  const Tensor q = bridge::normal({1, 1, 1, kDim}, "q"), k = bridge::normal({1, 1, 1, kDim}, "k");
  const auto logit = [&](int64_t i, int64_t j) {
    const oracle::Array a = bridge::array_of(rotate(Var(q), table, i).value()),
                        b = bridge::array_of(rotate(Var(k), table, j).value());
    return oracle::dot(a.x, b.x);
  };
  const double allowed = 40 * static_cast<double>(kEpsilon);
  for (const int64_t apart : {0, 1, 7, 20})
    for (int64_t j = 0; j + apart < kPlaces; ++j) {
      EXPECT_NEAR(logit(j + apart, j), logit(apart, 0), allowed);
      EXPECT_NEAR(logit(j, j + apart), logit(0, apart), allowed);
    }
  EXPECT_GT(std::abs(logit(7, 0) - logit(1, 0)), 1e-2);
}

TEST(Rotate, RefusesPositionsBeyondItsTable) {
  const Var x(Tensor::zeros({1, 1, 4, 6}));
  EXPECT_NO_THROW(rotate(x, rotary_table(5, 6), 1));
  EXPECT_THROW(rotate(x, rotary_table(5, 6), 2), Error);
  EXPECT_THROW(rotate(x, rotary_table(5, 8)), Error);
}

TEST(RepeatHeads, StandSideBySide) {
  const Tensor x = bridge::normal({2, 2, 3, 4}, "x");
  const Tensor got = repeat_heads(Var(x), 3).value();
  ASSERT_EQ(got.shape(), (Shape{2, 6, 3, 4}));
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], x[i / 36 * 12 + i % 12]);
}

// A linear op's gradient is its transpose: ⟨s, f(x)⟩ = ⟨fᵀ(s), x⟩.
TEST(HeadOps, GradientsAreTheirTransposes) {
  const Tensor table = rotary_table(9, 5);
  for (const bool turn : {true, false}) {
    const Var x(bridge::normal({2, 2, 6, 5}, "x"), true);
    const Var y = turn ? rotate(x, table, 2) : repeat_heads(x, 3);
    const Tensor seed = bridge::normal(y.shape(), "seed"), value = y.value();
    y.backward(seed);
    EXPECT_NEAR(oracle::dot(bridge::array_of(seed).x, bridge::array_of(value).x),
                oracle::dot(bridge::array_of(x.grad()).x, bridge::array_of(x.value()).x),
                400 * static_cast<double>(kEpsilon));
  }
}

}  // namespace
}  // namespace attn::ops_heads_test
