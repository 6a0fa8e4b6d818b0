// Ops that move numbers: every element is where its index says, and gradients go back the same way.
#include <array>

#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_shape_test {
namespace {

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

}  // namespace
}  // namespace attn::ops_shape_test
