// relu against its oracle, its exact identities, and the two popular bugs: dividing by the padded
// or the whole length, and negative weights where a mask is added after the relu.
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "variants/reference/scores.h"
#include "tests/variants/textbook_cases.h"

namespace attn::relu_test {
namespace {

Tensor answer(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
  const NoGrad no_grad;
  const auto attention =
      find_variant("relu").build({q.dim(1), q.dim(3), k.dim(2), mask.causal, 1, {}}, {});
  return attention->forward(Var(q), Var(k), Var(v), mask).value();
}

TEST(Relu, EqualsItsOracleForwardAndBackward) {
  textbook::expect_oracle("relu", {}, 5, 1,
                          [](const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
                            return oracle::relu_attention(x[0], x[1], x[2], seen);
                          });
}

TEST(Relu, DecodesWhatItsForwardGives) { textbook::expect_decoding("relu", {}, 1); }

TEST(Relu, IsATwoLayerPerceptronHomogeneousInItsQueries) {
  const Tensor q = bridge::normal({1, 2, 19, 4}, "q"), k = bridge::normal({1, 2, 23, 4}, "k"),
               v = bridge::normal({1, 2, 23, 4}, "v");
  const Tensor once = answer(q, k, v, {});
  for (real& x : q.values()) x *= 4;  // a power of two: exact
  const Tensor four = answer(q, k, v, {});
  for (int64_t i = 0; i < once.size(); ++i) ASSERT_EQ(four[i], 4 * once[i]);
}

TEST(Relu, RowsOfNegativeLogitsAreZeroWithZeroGradients) {
  const Tensor ones = Tensor::full({1, 1, 7, 4}, 1), minus = Tensor::full({1, 1, 7, 4}, -1);
  const auto attention = find_variant("relu").build({1, 4, 7, false, 1, {}}, {});
  const Var q(ones, true), k(minus, true), v(ones, true);
  const Var out = attention->forward(q, k, v);
  out.backward(ones);
  for (const Tensor& t : {out.value(), q.grad(), k.grad(), v.grad()})
    for (const real x : t.values()) ASSERT_EQ(x, 0);
}

// Ones everywhere: every weight is √d / count, so that the output is √d = 2 if the count is right.
TEST(Relu, RegressionCountsTheVisibleKeysNeitherPaddingNorTheFuture) {
  const Tensor ones = Tensor::full({2, 1, 50, 4}, 1);
  for (const bool causal : {false, true}) {
    const Tensor each = answer(ones, ones, ones, {causal, {50, 9}});  // outlives the loop
    for (const real x : each.values())
      ASSERT_NEAR(static_cast<double>(x), 2, 20 * static_cast<double>(kEpsilon));
  }
}

TEST(Relu, GradientsDoNotDependOnHowAHeadIsShared) {
  const int before = threads();
  const Tensor q = bridge::normal({1, 1, 300, 8}, "q"), k = bridge::normal({1, 1, 520, 8}, "k"),
               v = bridge::normal({1, 1, 520, 8}, "v");
  const auto attention = find_variant("relu").build({1, 8, 520, true, 1, {}}, {});
  std::vector<Tensor> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    const Var a(q, true), b(k, true), c(v, true);
    attention->forward(a, b, c, {.causal = true}).backward(bridge::normal(q.shape(), "seed"));
    const std::vector<Tensor> grads = {a.grad(), b.grad(), c.grad()};
    if (first.empty()) first = grads;
    for (size_t i = 0; i < grads.size(); ++i)
      EXPECT_TRUE(bridge::relative_error(grads[i], bridge::array_of(first[i]).x) <= 40 * kEpsilon);
  }
  set_threads(before);
}

}  // namespace
}  // namespace attn::relu_test
