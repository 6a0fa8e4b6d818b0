// Ops that move numbers or hide them: shapes, heads and masks.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/reference/scores.h"

namespace attn::ops_shape_test {
namespace {

// Ops that move numbers: every element is where its index says, and gradients go back the same way.

TEST(OpsShape, Reshape) {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  const Var y = reshape(Var(x), {6, 4});
  EXPECT_EQ(y.value().data(), x.data());
  EXPECT_EQ(y.shape(), Shape({6, 4}));
  EXPECT_THROW(reshape(Var(x), {5, 4}), Error);
  expect_gradients([](const std::vector<Var>& in) { return square(reshape(in[0], {6, 4})); }, {x});
}

TEST(OpsShape, SliceAlongEveryDimension) {
  const Tensor x = random_tensor({3, 4, 5, 6}, 2);
  for (int dim = -4; dim < 4; dim++) {
    const int at = (dim + 4) % 4;
    const Tensor y = slice(Var(x), dim, 1, 3).value();
    ASSERT_EQ(y.shape(), x.shape().with(at, 2));
    int64_t next = 0;
    for (int64_t i = 0; i < x.size(); i++) {
      const std::array<int64_t, 4> index = {i / 120, i / 30 % 4, i / 6 % 5, i % 6};
      if (index[static_cast<size_t>(at)] < 1 || index[static_cast<size_t>(at)] >= 3) continue;
      ASSERT_EQ(y[next++], x[i]);
    }
    expect_gradients([dim](const std::vector<Var>& in) { return slice(in[0], dim, 1, 3); }, {x});
  }
  EXPECT_EQ(slice(Var(x), 1, 2, 2).value().size(), 0);
  EXPECT_THROW(slice(Var(x), 4, 0, 1), Error);
  EXPECT_THROW(slice(Var(x), 0, 2, 4), Error);
  EXPECT_THROW(slice(Var(x), 0, 2, 1), Error);
  EXPECT_THROW(slice(Var(x), 0, -1, 1), Error);
}

TEST(OpsShape, OverlappingSlicesAddUp) {
  expect_gradients(
      [](const std::vector<Var>& in) {
        return multiply(slice(in[0], 0, 0, 3), slice(in[0], 0, 1, 4));
      },
      {random_tensor({4, 3}, 3)});
}

TEST(OpsShape, RegressionAConstantInFrontMovesNoGradientOfAConcat) {
  const Tensor zeros = Tensor::zeros({3, 4});
  expect_gradients(
      [&](const std::vector<Var>& in) {
        return square(concat(std::vector<Var>{Var(zeros), in[0], Var(zeros), in[1]}, 0));
      },
      {random_tensor({2, 4}, 1), random_tensor({3, 4}, 2)});
}

TEST(OpsShape, ConcatUndoesSlice) {
  const Tensor x = random_tensor({3, 4, 5}, 4);
  for (int dim = 0; dim < 3; dim++) {
    const std::vector<Var> parts = {slice(Var(x), dim, 0, 1), slice(Var(x), dim, 1, 1),
                                    slice(Var(x), dim, 1, x.dim(dim))};
    const Tensor y = concat(parts, dim - 3).value();
    ASSERT_EQ(y.shape(), x.shape());
    for (int64_t i = 0; i < x.size(); i++) ASSERT_EQ(y[i], x[i]);
  }
  expect_gradients([](const std::vector<Var>& in) { return concat(in, 1); },
                   {random_tensor({2, 3, 4}, 5), random_tensor({2, 1, 4}, 6)});
  expect_gradients(
      [](const std::vector<Var>& in) {
        return concat(std::vector<Var>{in[0], square(in[0]), in[0]}, 0);
      },
      {random_tensor({2, 3}, 7)});
  EXPECT_THROW(concat({}, 0), Error);
  EXPECT_THROW(concat(std::vector<Var>{Var(x), Var(random_tensor({3, 4, 4}, 1))}, 0), Error);
  EXPECT_THROW(concat(std::vector<Var>{Var(x), Var(random_tensor({3, 4}, 1))}, 0), Error);
}

TEST(OpsShape, TransposeLast) {
  const Tensor x = random_tensor({2, 19, 35}, 8);
  const Tensor y = transpose_last(Var(x)).value();
  ASSERT_EQ(y.shape(), Shape({2, 35, 19}));
  for (int64_t b = 0; b < 2; b++)
    for (int64_t i = 0; i < 19; i++)
      for (int64_t j = 0; j < 35; j++)
        ASSERT_EQ(y[(b * 35 + j) * 19 + i], x[(b * 19 + i) * 35 + j]);
  expect_gradients([](const std::vector<Var>& in) { return transpose_last(in[0]); }, {x});
  EXPECT_THROW(transpose_last(Var(random_tensor({3}, 1))), Error);
}

TEST(OpsShape, HeadsSplitAndMerge) {
  const Tensor x = random_tensor({2, 5, 12}, 9);
  const Var split = split_heads(Var(x), 3);
  ASSERT_EQ(split.shape(), Shape({2, 3, 5, 4}));
  for (int64_t b = 0; b < 2; b++)
    for (int64_t h = 0; h < 3; h++)
      for (int64_t i = 0; i < 5; i++)
        for (int64_t j = 0; j < 4; j++)
          ASSERT_EQ(split.value()[((b * 3 + h) * 5 + i) * 4 + j], x[(b * 5 + i) * 12 + h * 4 + j]);
  const Tensor back = merge_heads(split).value();
  ASSERT_EQ(back.shape(), x.shape());
  for (int64_t i = 0; i < x.size(); i++) ASSERT_EQ(back[i], x[i]);
  expect_gradients([](const std::vector<Var>& in) { return split_heads(in[0], 3); }, {x});
  expect_gradients([](const std::vector<Var>& in) { return merge_heads(in[0]); },
                   {random_tensor({2, 3, 5, 1}, 10)});
  EXPECT_THROW(split_heads(Var(x), 5), Error);
  EXPECT_THROW(split_heads(Var(x), 0), Error);
  EXPECT_THROW(merge_heads(Var(x)), Error);
}

// Rotary positions against the written-out rotation, their dot products, and repeated heads; both
// are linear, so that their gradients are their transposes.

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

// Dropout's share, scale and repeatability; padding that never leaks; the gradients of both.

TEST(OpsMask, DropoutDropsTheShareAskedForAndScalesTheRest) {
  const Tensor x = Tensor::full({101, 1000}, 2);
  Rng random = rng(3, "dropout");
  const Tensor y = dropout(Var(x), 0.25, random).value();
  double kept = 0;
  for (const real v : y.values()) {
    ASSERT_TRUE(v == 0 || std::fabs(v - real(2 / 0.75)) <= 4 * kEpsilon) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 101000, 0.75, 0.007);  // five deviations of 0.00136
  Rng again = rng(3, "dropout");
  const Tensor same = dropout(Var(x), 0.25, again).value();
  for (int64_t i = 0; i < x.size(); i++) ASSERT_EQ(same[i], y[i]);
  EXPECT_EQ(dropout(Var(x), 0, again).value().data(), x.data());
  EXPECT_THROW(dropout(Var(x), 1, again), Error);
  EXPECT_THROW(dropout(Var(x), -0.1, again), Error);
}

// Decisions are drawn from 65536 numbers: a chance below half of one of them drops nothing.
TEST(OpsMask, DropoutWithTheSmallestChanceKeepsEverything) {
  Rng random = rng(4, "dropout");
  const Tensor y = dropout(Var(Tensor::full({1000, 1000}, real(1))), 1e-6, random).value();
  for (const real v : y.values()) ASSERT_GT(v, 0);
}

TEST(OpsMask, DropoutGradientUsesTheSameMask) {
  expect_gradients(
      [](const std::vector<Var>& in) {
        Rng random = rng(5, "dropout");
        return dropout(in[0], 0.4, random);
      },
      {random_tensor({7, 9}, 5)});
}

TEST(OpsMask, ZeroPaddingSelects) {
  const Tensor x = random_tensor({3, 2, 4, 5}, 6);
  const std::vector<int64_t> lengths = {4, 0, 3};
  const auto padded = [&](int64_t i) {
    return (i / 5) % 4 >= lengths[static_cast<size_t>(i / 40)];
  };
  expect_gradients([&](const std::vector<Var>& in) { return zero_padding(in[0], lengths); }, {x},
                   {.elements = 120});
  for (int64_t i = 0; i < x.size(); i++)
    if (padded(i)) x[i] = std::numeric_limits<real>::quiet_NaN();
  const Var in(x, true);
  const Var y = zero_padding(in, lengths);
  y.backward(Tensor::full(x.shape(), std::numeric_limits<real>::quiet_NaN()));
  for (int64_t i = 0; i < x.size(); i++) {
    ASSERT_EQ(y.value()[i], padded(i) ? real(0) : x[i]);
    ASSERT_EQ(std::isnan(in.grad()[i]), !padded(i));
  }
  EXPECT_EQ(zero_padding(in, {}).value().data(), x.data());
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2}), Error);
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2, 5}), Error);
  EXPECT_THROW(zero_padding(in, std::vector<int64_t>{1, 2, -1}), Error);
}

}  // namespace
}  // namespace attn::ops_shape_test
