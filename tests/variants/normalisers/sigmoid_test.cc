// sigmoid against its equation, its limit as the bias falls, doubled keys, and the trap of a bias
// that follows the length.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"

namespace attn::sigmoid_test {
namespace {

using perturbed::Given;

Given biased(double bias) { return {{"bias_from", std::string("value")}, {"bias", bias}}; }

perturbed::Twin twin(double bias) {
  return [bias](const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
    return perturbed::by_rows(x, seen, [bias](std::vector<double> z) {
      for (double& w : z) w = 0.5 * (1 + std::tanh((w + bias) / 2));
      return z;
    });
  };
}

TEST(Sigmoid, EqualsItsEquationForwardAndBackward) {
  for (const double bias : {0.0, -3.0})
    perturbed::expect_twin_everywhere("sigmoid", biased(bias), twin(bias));
}

TEST(Sigmoid, BiasIsThatOfTheLongestLength) {
  for (const int64_t n : {9, 33})
    perturbed::expect_twin("sigmoid", {}, {5, n}, {true, {}},
                           twin(-std::log(static_cast<double>(n))));
}

TEST(Sigmoid, DecodesWhatItsForwardGives) {
  perturbed::expect_decoding("sigmoid", {}, 4);
  perturbed::expect_decoding("sigmoid", {}, 2);
}

TEST(Sigmoid, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("sigmoid", {});
}

Tensor answer(double bias, const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const NoGrad no_grad;
  const auto attention = find_variant("sigmoid").build({2, 6, 64, causal, 1, {}}, biased(bias));
  return attention->forward(Var(q), Var(k), Var(v), {.causal = causal}).value();
}

// σ(z + b) → e^(z + b): the output over that of ones is softmax attention. Weights of e^-40 keep
// their digits.
TEST(Sigmoid, RegressionTinyWeightsKeepTheirDigits) {
  const Tensor q = bridge::normal({2, 2, 20, 6}, "q"), k = bridge::normal({2, 2, 30, 6}, "k"),
               v = bridge::normal({2, 2, 30, 6}, "v");
  const Tensor some = answer(-40, q, k, v, false),
               ones = answer(-40, q, k, Tensor::full(v.shape(), 1), false);
  for (int64_t i = 0; i < some.size(); ++i) some[i] /= ones[i];
  const oracle::Array want =
      oracle::softmax_attention(bridge::array_of(q), bridge::array_of(k), bridge::array_of(v), {});
  EXPECT_LE(bridge::relative_error(some, want.x), 40 * kEpsilon);
}

TEST(Sigmoid, WeightsOfLargeLogitsAreZeroAndOne) {
  const Tensor q = Tensor::full({1, 2, 1, 6}, 40), v = Tensor::full({1, 2, 1, 6}, 3);
  const Tensor up = answer(0, q, q, v, true),
               down = answer(0, q, Tensor::full(q.shape(), -40), v, true);
  for (const real x : up.values()) EXPECT_EQ(x, 3);
  for (const real x : down.values()) EXPECT_EQ(x, 0);
}

TEST(Sigmoid, DoubledKeysDoubleTheOutput) {
  const Tensor q = bridge::normal({1, 2, 7, 6}, "q"), k = bridge::normal({1, 2, 9, 6}, "k"),
               v = bridge::normal({1, 2, 9, 6}, "v");
  const auto twice = [](const Tensor& x) {
    const Tensor all(x.shape().with(2, 18));
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < 18; ++i)
        std::copy_n(x.data() + (h * 9 + i % 9) * 6, 6, all.data() + (h * 18 + i) * 6);
    return all;
  };
  const Tensor once = answer(-2, q, k, v, false), both = answer(-2, q, twice(k), twice(v), false);
  std::vector<double> want;
  for (const real x : once.values()) want.push_back(2 * static_cast<double>(x));
  EXPECT_LE(bridge::relative_error(both, want), 10 * kEpsilon);
}

TEST(Sigmoid, RegressionAPrefixIsAnsweredAsItStandsAlone) {
  const Tensor q = bridge::normal({1, 2, 50, 6}, "q");
  const auto attention = find_variant("sigmoid").build({2, 6, 64, true, 1, {}}, {});
  const auto first = [](const Tensor& x, int64_t n) {
    const Tensor part(x.shape().with(2, n));
    for (int64_t h = 0; h < 2; ++h)
      std::copy_n(x.data() + h * 50 * 6, n * 6, part.data() + h * n * 6);
    return part;
  };
  const auto of = [&](const Tensor& x) {
    return attention->forward(Var(x), Var(x), Var(x), {.causal = true}).value();
  };
  EXPECT_LE(bridge::relative_error(of(first(q, 20)), bridge::array_of(first(of(q), 20)).x),
            10 * kEpsilon);
}

}  // namespace
}  // namespace attn::sigmoid_test
