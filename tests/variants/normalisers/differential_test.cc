// differential against its equations at moved weights, before and after the norm, and what it is
// for equal halves and for λ of 0.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"

namespace attn::differential_test {
namespace {

using perturbed::Given;

oracle::Array half(const oracle::Array& x, int64_t which) {
  oracle::Array out(x.batch, x.heads, x.len, x.dim / 2);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len; ++i)
        for (int64_t c = 0; c < out.dim; ++c)
          out.at(b, h, i, c) = x.at(b, h, i, which * out.dim + c);
  return out;
}

// x: q, k, v, λ_q1, λ_k1, λ_q2, λ_k2 and, with the norm, its gain.
oracle::Array equation(const std::vector<oracle::Array>& x, const oracle::Visibility& seen,
                       double start) {
  double first = 0, second = 0;
  for (int64_t c = 0; c < x[3].dim; ++c) {
    first += x[3].at(0, 0, 0, c) * x[4].at(0, 0, 0, c);
    second += x[5].at(0, 0, 0, c) * x[6].at(0, 0, 0, c);
  }
  const double lambda = std::exp(first) - std::exp(second) + start;
  oracle::Array out = oracle::softmax_attention(half(x[0], 0), half(x[1], 0), x[2], seen);
  const oracle::Array other = oracle::softmax_attention(half(x[0], 1), half(x[1], 1), x[2], seen);
  for (size_t i = 0; i < out.x.size(); ++i) out.x[i] -= lambda * other.x[i];
  if (x.size() < 8) return out;
  const int64_t dim = out.dim;
  for (size_t row = 0; row < out.x.size(); row += static_cast<size_t>(dim)) {
    double squares = 0;
    for (int64_t c = 0; c < dim; ++c) squares += std::pow(out.x[row + static_cast<size_t>(c)], 2);
    for (int64_t c = 0; c < dim; ++c)
      out.x[row + static_cast<size_t>(c)] *=
          (1 - start) * x[7].at(0, 0, 0, c) / std::sqrt(squares / static_cast<double>(dim) + 1e-5);
  }
  return out;
}

perturbed::Twin twin(double start) {
  return [start](const auto& x, const auto& seen) { return equation(x, seen, start); };
}

const Given kPlain = {{"norm", false}, {"lambda_init", 0.8}};

TEST(Differential, EqualsItsEquationsBeforeTheNorm) {
  perturbed::expect_twin_everywhere("differential", kPlain, twin(0.8));
}

TEST(Differential, EqualsItsEquationsWithTheNorm) {
  perturbed::expect_twin_everywhere("differential", {}, twin(0.2));
}

TEST(Differential, DecodesWithMovedWeights) {
  for (const int64_t kv_heads : {4, 2}) {
    perturbed::expect_decoding("differential", {}, kv_heads);
    perturbed::expect_decoding("differential", kPlain, kv_heads);
  }
}

TEST(Differential, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("differential", {});
}

// λ as given, from vectors of zeros: e^0 - e^0 + λ.
Tensor at_lambda(double lambda, const Tensor& q, const Tensor& k, const Tensor& v) {
  const NoGrad no_grad;
  const auto attention =
      find_variant("differential")
          .build({2, 6, 40, false, 3, {}}, {{"norm", false}, {"lambda_init", lambda}});
  for (const Weight& weight : attention->weights())
    weight.value.set_value(Tensor::zeros(weight.value.shape()));
  return attention->forward(Var(q), Var(k), Var(v)).value();
}

TEST(Differential, WithoutLambdaItIsSoftmaxOfTheFirstHalf) {
  const Tensor q = bridge::normal({2, 2, 20, 6}, "q"), k = bridge::normal({2, 2, 40, 6}, "k"),
               v = bridge::normal({2, 2, 40, 6}, "v");
  const oracle::Array want = oracle::softmax_attention(
      half(bridge::array_of(q), 0), half(bridge::array_of(k), 0), bridge::array_of(v), {});
  EXPECT_LE(bridge::relative_error(at_lambda(0, q, k, v), want.x), 40 * kEpsilon);
}

TEST(Differential, RowsSumToOneLessLambda) {
  const Tensor q = bridge::normal({2, 2, 20, 6}, "q", 3), k = bridge::normal({2, 2, 40, 6}, "k");
  for (const double lambda : {0.25, 1.0}) {
    const Tensor sums = at_lambda(lambda, q, k, Tensor::full(k.shape(), 1));  // outlives the loop
    for (const real x : sums.values()) EXPECT_NEAR(static_cast<double>(x), 1 - lambda, 1e-5);
  }
}

TEST(Differential, AnOddHeadIsRefused) {
  const VariantInfo& info = find_variant("differential");
  EXPECT_TRUE(info.why_not({.head_dim = 5}, Params(info.name, info.params)).has_value());
  EXPECT_FALSE(info.why_not({.head_dim = 6}, Params(info.name, info.params)).has_value());
}

}  // namespace
}  // namespace attn::differential_test
