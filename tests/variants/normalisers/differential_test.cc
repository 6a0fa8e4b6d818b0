// Softmax over changed logits or weights: differential, qk_norm and talking_heads.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"

namespace attn::differential_test {
namespace {

// differential against its equations at moved weights, before and after the norm, and what it is
// for equal halves and for λ of 0.

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
oracle::Array differential_equation(const std::vector<oracle::Array>& x,
                                    const oracle::Visibility& seen, double start) {
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
  return [start](const auto& x, const auto& seen) { return differential_equation(x, seen, start); };
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

// Each layer of a model starts at its own λ: 0.8 - 0.6·e^(-0.3·layer).
TEST(Differential, StartsAtTheLambdaOfItsLayer) {
  const VariantInfo& info = find_variant("differential");
  const AttentionConfig fourth = {2, 6, 40, false, 3, {}, 3};
  const Tensor q = bridge::normal({1, 2, 40, 6}, "q"), k = bridge::normal({1, 2, 40, 6}, "k");
  const auto of = [&](const AttentionConfig& config, const Given& given) {
    const NoGrad no_grad;
    return info.build(config, given)->forward(Var(q), Var(k), Var(k)).value();
  };
  const Tensor got = of(fourth, {});
  const Tensor want = of({2, 6, 40, false, 3, {}}, {{"lambda_init", 0.8 - 0.6 * std::exp(-0.9)}});
  EXPECT_LE(bridge::relative_error(got, bridge::array_of(want).x), 4 * kEpsilon);
  EXPECT_GT(bridge::relative_error(of({2, 6, 40, false, 3, {}}, {}), bridge::array_of(want).x),
            0.1);
  EXPECT_LE(bridge::relative_error(of(fourth, {{"lambda_init", 0.2}}),
                                   bridge::array_of(of({2, 6, 40, false, 3, {}}, {})).x),
            4 * kEpsilon);
}

TEST(Differential, AnOddHeadIsRefused) {
  const VariantInfo& info = find_variant("differential");
  EXPECT_TRUE(info.why_not({.head_dim = 5}, Params(info.name, info.params)).has_value());
  EXPECT_FALSE(info.why_not({.head_dim = 6}, Params(info.name, info.params)).has_value());
}

// qk_norm against its equations at gains that are not 1, decoding with the same, and the identity
// that the size of queries and keys does not matter.

// Rows over their size, times gain(h, c).
template <class GainOf>
oracle::Array over_size(const oracle::Array& x, bool mean, const GainOf& gain) {
  oracle::Array out = x;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < x.dim; ++c) sum += x.at(b, h, i, c) * x.at(b, h, i, c);
        const double size =
            mean ? std::sqrt(sum / static_cast<double>(x.dim) + 1e-6) : std::sqrt(sum + 1e-12);
        for (int64_t c = 0; c < x.dim; ++c) out.at(b, h, i, c) *= gain(h, c) / size;
      }
  return out;
}

oracle::Array rms(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const auto gains = [&](size_t which) {
    return [&x, which](int64_t, int64_t c) { return x[which].at(0, 0, 0, c); };
  };
  return oracle::softmax_attention(over_size(x[0], true, gains(3)), over_size(x[1], true, gains(4)),
                                   x[2], seen);
}

oracle::Array l2(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const auto heat = [&x](int64_t h, int64_t) { return x[3].at(0, 0, h, 0); };
  const auto one = [](int64_t, int64_t) { return 1.0; };
  return oracle::softmax_attention(over_size(x[0], false, heat), over_size(x[1], false, one), x[2],
                                   seen, 1);
}

const Given kL2 = {}, kRms = {{"norm", std::string("rms")}};

TEST(QkNorm, EqualsItsEquationsForwardAndBackward) {
  perturbed::expect_twin_everywhere("qk_norm", kRms, rms);
  perturbed::expect_twin_everywhere("qk_norm", kL2, l2);
}

TEST(QkNorm, DecodesWithGainsThatAreNotOne) {
  for (const int64_t kv_heads : {4, 2, 1}) {
    perturbed::expect_decoding("qk_norm", kRms, kv_heads);
    perturbed::expect_decoding("qk_norm", kL2, kv_heads);
  }
}

TEST(QkNorm, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("qk_norm", kRms);
  perturbed::expect_gradients_by_threads("qk_norm", kL2);
}

TEST(QkNorm, TheSizeOfQueriesAndKeysDoesNotMatter) {
  for (const Given& given : {kRms, kL2}) {
    const auto attention = perturbed::build("qk_norm", given, {2, 6, 30, false, 3, {}});
    const NoGrad no_grad;
    const Tensor v = bridge::normal({1, 2, 30, 6}, "v");
    const auto of = [&](double scale) {
      return attention
          ->forward(Var(bridge::normal(v.shape(), "q", 100 * scale)),
                    Var(bridge::normal(v.shape(), "k", 100 / scale)), Var(v))
          .value();
    };
    EXPECT_LE(bridge::relative_error(of(1), bridge::array_of(of(4)).x), 1e-4);
  }
}

TEST(QkNorm, TemperatureStartsAtTheLongestLength) {
  const auto attention = find_variant("qk_norm").build({3, 6, 100, true, 1, {}}, kL2);
  for (const real t : attention->weights()[0].value.value().values())
    EXPECT_NEAR(static_cast<double>(t), std::log2(9900.0), 1e-5);
}

// talking_heads against its equations at matrices that mix, for 1 to 9 heads, and the identity that
// a permutation of heads after the softmax hands weights to other values.

// J' = J·P_l and U = W·P_w, over all heads at once: x is q, k, v, P_l, P_w.
oracle::Array talking_heads_equation(const std::vector<oracle::Array>& x,
                                     const oracle::Visibility& seen) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  const auto heads = static_cast<size_t>(q.heads), keys = static_cast<size_t>(k.len);
  using Matrix = std::vector<std::vector<double>>;  // [heads][keys]
  const auto mixed = [&](const Matrix& from, const oracle::Array& by) {
    Matrix to(heads, std::vector<double>(keys, 0));
    for (size_t h = 0; h < heads; ++h)
      for (size_t g = 0; g < heads; ++g)
        for (size_t j = 0; j < keys; ++j)
          to[g][j] += by.at(0, 0, static_cast<int64_t>(h), static_cast<int64_t>(g)) * from[h][j];
    return to;
  };
  oracle::Array out(q.batch, q.heads, q.len, v.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t i = 0; i < q.len; ++i) {
      Matrix logits(heads, std::vector<double>(keys, 0));
      const auto visible = [&](size_t j) {
        return oracle::sees(seen, b, i, static_cast<int64_t>(j), q.len, k.len);
      };
      for (size_t h = 0; h < heads; ++h)
        for (size_t j = 0; j < keys; ++j)
          if (visible(j))
            logits[h][j] = oracle::dot(q.row(b, static_cast<int64_t>(h), i),
                                       k.row(b, static_cast<int64_t>(h), static_cast<int64_t>(j))) /
                           std::sqrt(static_cast<double>(q.dim));
      Matrix weights = mixed(logits, x[3]);
      for (std::vector<double>& row : weights) {
        double total = 0;
        for (size_t j = 0; j < keys; ++j) total += row[j] = visible(j) ? std::exp(row[j]) : 0;
        for (double& w : row) w = total > 0 ? w / total : 0;
      }
      weights = mixed(weights, x[4]);
      for (size_t h = 0; h < heads; ++h)
        for (size_t j = 0; j < keys; ++j)
          for (int64_t c = 0; visible(j) && c < v.dim; ++c)
            out.at(b, static_cast<int64_t>(h), i, c) +=
                weights[h][j] * v.at(b, static_cast<int64_t>(h), static_cast<int64_t>(j), c);
    }
  return out;
}

TEST(TalkingHeads, EqualsItsEquationsForwardAndBackward) {
  perturbed::expect_twin_everywhere("talking_heads", {}, talking_heads_equation);
  for (const int64_t heads : {1, 6, 9})
    perturbed::expect_twin("talking_heads", {}, {13, 21, heads, 4}, {true, {21, 10}},
                           talking_heads_equation);
}

TEST(TalkingHeads, DecodesWithMatricesThatMix) {
  for (const int64_t kv_heads : {4, 2, 1})
    perturbed::expect_decoding("talking_heads", {}, kv_heads);
}

TEST(TalkingHeads, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("talking_heads", {});
}

// P_w that swaps two heads: each head's weights meet the other's values.
TEST(TalkingHeads, RegressionMatricesGoFromRowToColumn) {
  const auto attention = find_variant("talking_heads").build({3, 6, 20, false, 3, {}}, {});
  const Tensor turn = Tensor::of({1, 3, 3}, std::vector<double>{0, 1, 0, 0, 0, 1, 1, 0, 0});
  attention->weights()[1].value.set_value(
      turn);  // head 0's weights go to head 1, 1's to 2, 2's to 0
  const NoGrad no_grad;
  const Tensor q = bridge::normal({1, 3, 20, 6}, "q"), k = bridge::normal({1, 3, 20, 6}, "k"),
               v = bridge::normal({1, 3, 20, 6}, "v");
  const auto turned = [](const Tensor& x) {  // head h is what was head h - 1
    const Tensor to(x.shape());
    for (int64_t h = 0; h < 3; ++h)
      std::copy_n(x.data() + (h + 2) % 3 * 120, 120, to.data() + h * 120);
    return to;
  };
  const oracle::Array want = oracle::softmax_attention(
      bridge::array_of(turned(q)), bridge::array_of(turned(k)), bridge::array_of(v), {});
  EXPECT_LE(bridge::relative_error(attention->forward(Var(q), Var(k), Var(v)).value(), want.x),
            40 * kEpsilon);
}

}  // namespace
}  // namespace attn::differential_test
