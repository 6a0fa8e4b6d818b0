// Scores that are no scaled products: additive, gau and relu.
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "tests/variants/mixers.h"
#include "tests/variants/textbook_cases.h"
#include "variants/reference/scores.h"
#include "variants/reference/units.h"

namespace attn::scores_test {
namespace {

// additive against its oracle, mean pooling at w = 0, and the popular bug: no projections (a fixed
// tanh(q + k)), which no weight could mend. Saturated and far sums take other paths.

oracle::Array twin(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  return oracle::additive_attention(x[0], x[1], x[2], x[3], x[4], x[5], seen);
}

TEST(Additive, EqualsItsOracleForwardAndBackward) {
  textbook_cases::expect_oracle("additive", {}, 5, 1, twin);
}

TEST(Additive, EqualsItsOracleWithMoreUnitsThanDimensions) {
  textbook_cases::expect_oracle("additive", {{"units", int64_t{11}}}, 3, 1, twin);
}

TEST(Additive, DecodesWhatItsForwardGives) {
  textbook_cases::expect_decoding("additive", {}, 1);
  textbook_cases::expect_decoding("additive", {{"units", int64_t{9}}}, 3);
}

// Sums of ±100 beyond what exponentials of either side can hold, whose difference is small.
TEST(Additive, SumsOfLargeSidesStayExact) {
  const double large = kIsDouble ? 700 : 100;
  const auto attention = find_variant("additive").build({1, 4, 9, false, 1, {}}, {});
  const std::vector<Weight> weights = attention->weights();
  for (const size_t which : {0, 1}) {
    Tensor identity = Tensor::zeros({1, 4, 4});
    for (int64_t c = 0; c < 4; ++c) identity[c * 5] = 1;
    weights[which].value.set_value(identity);
  }
  const Tensor q = bridge::normal({1, 1, 6, 4}, "q"), k = bridge::normal({1, 1, 9, 4}, "k"),
               v = bridge::normal({1, 1, 9, 4}, "v");
  for (real& x : q.values()) x += static_cast<real>(large);
  for (real& x : k.values()) x -= static_cast<real>(large);
  std::vector<oracle::Array> arrays;
  for (const Tensor& t : {q, k, v}) arrays.push_back(bridge::array_of(t));
  for (const Weight& weight : weights) arrays.push_back(bridge::array_of(weight.value.value()));
  const NoGrad no_grad;
  const Tensor got = attention->forward(Var(q), Var(k), Var(v)).value();
  EXPECT_LE(bridge::relative_error(got, twin(arrays, {}).x), 100 * kEpsilon);
}

TEST(Additive, NoWeightIsTheMeanOfTheValues) {
  const auto attention = find_variant("additive").build({2, 4, 30, true, 1, {}}, {});
  attention->weights()[2].value.set_value(Tensor::zeros({2, 4}));
  const Tensor q = bridge::normal({1, 2, 30, 4}, "q"), k = bridge::normal({1, 2, 30, 4}, "k"),
               v = bridge::normal({1, 2, 30, 4}, "v");
  const NoGrad no_grad;
  const Tensor got = attention->forward(Var(q), Var(k), Var(v), {.causal = true}).value();
  const oracle::Array want = oracle::average(bridge::array_of(q), bridge::array_of(v), {true},
                                             [](auto, auto, auto, auto) { return 0.0; });
  EXPECT_TRUE(bridge::relative_error(got, want.x) <= 40 * kEpsilon);
}

// tanh(q + k) without projections moves by nothing when W_q or W_k change.
TEST(Additive, RegressionProjectsQueriesAndKeys) {
  const Tensor q = bridge::normal({1, 1, 8, 4}, "q"), k = bridge::normal({1, 1, 8, 4}, "k"),
               v = bridge::normal({1, 1, 8, 4}, "v");
  const auto attention = find_variant("additive").build({1, 4, 8, false, 1, {}}, {});
  const Var out = attention->forward(Var(q), Var(k), Var(v));
  out.backward(bridge::normal(out.shape(), "seed"));
  ASSERT_EQ(attention->weights().size(), 3u);
  for (const Weight& weight : attention->weights())
    EXPECT_GT(
        bridge::norm(
            bridge::array_of(weight.value.grad().reshaped({1, 1, weight.value.grad().size()})).x),
        1e-3)
        << weight.name;
}

// gau against its equations in double; weights that are squares; and the trap of a causal row that
// is divided by the whole length.

using namespace mixers;

TEST(Gau, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const Case& at : cases(causal))
      if (at.len < 100)
        expect_twin("gau", at, {{"base", int64_t{5}}}, [&](const auto& x, const auto& w) {
          return oracle::gated_unit(x, w, causal, {at.lengths});
        });
}

// Queries four times as large, which rounds nothing: weights 16 times.
TEST(Gau, WeightsAreSquaresOfProducts) {
  const Case at{2, 1, 30, 6, false, {}};
  const auto gau = build("gau", at, {});
  draw_weights(*gau);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Tensor once = as_mixer(*gau)->mix(Var(x)).value();
  for (const Weight& weight : gau->weights())
    if (weight.name.starts_with("query")) {
      const Tensor larger = weight.value.value().clone();
      for (real& value : larger.values()) value *= 4;
      weight.value.set_value(larger);
    }
  std::vector<double> want;
  for (const real value : once.values()) want.push_back(16 * static_cast<double>(value));
  EXPECT_LE(bridge::relative_error(as_mixer(*gau)->mix(Var(x)).value(), want), 20 * kEpsilon);
}

TEST(Gau, RegressionACausalRowDoesNotKnowTheLength) {
  const Case at{1, 1, 300, 6, true, {}};
  const auto gau = build("gau", at, {});
  draw_weights(*gau);
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor all = as_mixer(*gau)->mix(Var(x), at.mask()).value(),
               first = as_mixer(*gau)->mix(Var(rows_of(x, 0, 0, 70)), at.mask()).value();
  EXPECT_LE(distance(first, rows_of(all, 0, 0, 70)), 50 * kEpsilon);
}

// relu against its oracle, its exact identities, and the two popular bugs: dividing by the padded
// or the whole length, and negative weights where a mask is added after the relu.

Tensor answer(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
  const NoGrad no_grad;
  const auto attention =
      find_variant("relu").build({q.dim(1), q.dim(3), k.dim(2), mask.causal, 1, {}}, {});
  return attention->forward(Var(q), Var(k), Var(v), mask).value();
}

TEST(Relu, EqualsItsOracleForwardAndBackward) {
  textbook_cases::expect_oracle(
      "relu", {}, 5, 1, [](const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
        return oracle::relu_attention(x[0], x[1], x[2], seen);
      });
}

TEST(Relu, DecodesWhatItsForwardGives) { textbook_cases::expect_decoding("relu", {}, 1); }

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
}  // namespace attn::scores_test
