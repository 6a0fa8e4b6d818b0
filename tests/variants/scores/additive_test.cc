// additive against its oracle, mean pooling at w = 0, and the popular bug: no projections (a fixed
// tanh(q + k)), which no weight could mend. Saturated and far sums take other paths.
#include <gtest/gtest.h>

#include "variants/reference/scores.h"
#include "tests/variants/textbook_cases.h"

namespace attn::additive_test {
namespace {

oracle::Array twin(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  return oracle::additive_attention(x[0], x[1], x[2], x[3], x[4], x[5], seen);
}

TEST(Additive, EqualsItsOracleForwardAndBackward) {
  textbook::expect_oracle("additive", {}, 5, 1, twin);
}

TEST(Additive, EqualsItsOracleWithMoreUnitsThanDimensions) {
  textbook::expect_oracle("additive", {{"units", int64_t{11}}}, 3, 1, twin);
}

TEST(Additive, DecodesWhatItsForwardGives) {
  textbook::expect_decoding("additive", {}, 1);
  textbook::expect_decoding("additive", {{"units", int64_t{9}}}, 3);
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
  EXPECT_TRUE(bridge::relative_error(got, twin(arrays, {}).x) <= 100 * kEpsilon)
      << bridge::relative_error(got, twin(arrays, {}).x);
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

}  // namespace
}  // namespace attn::additive_test
