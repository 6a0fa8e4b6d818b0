// Weights that may be zero, and weights without a sum: entmax and sigmoid.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"
#include "variants/normalisers/normalisers.h"

namespace attn::entmax_test {
namespace {

// entmax against sorting (sparsemax and entmax 1.5, as Peters et al. 2019, algorithm 1) and
// bisection, and the identities of its rows.

using Row = std::vector<double>;

Row sorted(Row z) {
  std::sort(z.begin(), z.end(), std::greater<>());
  return z;
}

Row sparsemax(const Row& z) {
  double sum = 0, theta = 0;
  const Row s = sorted(z);
  for (size_t j = 0; j < s.size(); ++j) {
    sum += s[j];
    const double count = static_cast<double>(j + 1);
    if (1 + count * s[j] > sum) theta = (sum - 1) / count;
  }
  Row p = z;
  for (double& x : p) x = std::fmax(0, x - theta);
  return p;
}

Row entmax15(const Row& z) {
  const double top = sorted(z)[0];
  Row x = z;
  for (double& value : x) value = (value - top) / 2;
  const Row s = sorted(x);
  double sum = 0, squares = 0, theta = 0;
  for (size_t j = 0; j < s.size(); ++j) {
    const double count = static_cast<double>(j + 1);
    sum += s[j], squares += s[j] * s[j];
    const double mean = sum / count, spread = count * (squares / count - mean * mean);
    const double tau = mean - std::sqrt(std::fmax(0, (1 - spread) / count));
    if (tau <= s[j]) theta = tau;
  }
  for (double& value : x) value = std::pow(std::fmax(0, value - theta), 2);
  return x;
}

Row bisected(const Row& z, double alpha) {
  const double top = (alpha - 1) * sorted(z)[0];
  double low = top - 1, high = top;
  Row p = z;
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2) {
    double sum = 0;
    for (size_t j = 0; j < z.size(); ++j)
      sum += p[j] = std::pow(std::fmax(0, (alpha - 1) * z[j] - middle), 1 / (alpha - 1));
    (sum >= 1 ? low : high) = middle;
  }
  return p;
}

Row softmax(Row z) {
  double sum = 0;
  for (double& x : z) sum += x = std::exp(x);
  for (double& x : z) x /= sum;
  return z;
}

perturbed::Twin twin(const perturbed::RowOf& of) {
  return [of](const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
    return perturbed::by_rows(x, seen, of);
  };
}

// Logits of scale 1 and of scale 4, most of whose weights are 0.
TEST(Entmax, EqualsSortingAndBisection) {
  for (const double scale : {1.0, 2.0}) {
    perturbed::expect_twin_everywhere("entmax", {{"alpha", 2.0}}, twin(sparsemax), scale);
    perturbed::expect_twin_everywhere("entmax", {}, twin(entmax15), scale);
  }
  // Whole powers 1/(α-1), of which 1.3333 misses one and 9 is above the last that is a product.
  for (const double alpha : {1.25, 1.3333, 1 + 1.0 / 3, 1 + 1.0 / 7, 1.125, 1 + 1.0 / 9, 1.75, 2.0})
    perturbed::expect_twin_everywhere("entmax", {{"alpha", alpha}},
                                      twin([alpha](const Row& z) { return bisected(z, alpha); }));
}

TEST(Entmax, AlphaOfOneIsSoftmax) {
  perturbed::expect_twin_everywhere("entmax", {{"alpha", 1.0}}, twin(softmax));
}

Row weights(double alpha, const Row& z) {
  const Tensor row = Tensor::of({static_cast<int64_t>(z.size())}, z), room(row.shape());
  const int64_t count = row.size();
  EntmaxWeights(alpha).weigh({1, 1, count, &count, row.data(), room.data()});
  Row p;
  for (const real x : row.values()) p.push_back(static_cast<double>(x));
  return p;
}

double total(const Row& p) {
  double sum = 0;
  for (const double x : p) sum += x;
  return sum;
}

constexpr double kRounding = 100 * static_cast<double>(kEpsilon);

// Ties, one key, spreads from 1e-6 to 1e4, a shift, and many keys.
TEST(Entmax, RowsSumToOneAndAreSparse) {
  for (const double alpha : {1.0, 1.05, 1.125, 1.2, 1.25, 1 + 1.0 / 3, 1.5, 1.75, 2.0})
    for (const double spread : {0.0, 1e-6, 1.0, 30.0, 1e4})
      for (const size_t n : {1U, 2U, 15U, 16U, 17U, 1000U}) {
        Row z(n);
        Rng random = rng(3, "z", n);
        for (double& x : z) x = spread * random.normal();
        const Row p = weights(alpha, z);
        for (const double x : p) EXPECT_TRUE(x >= 0 && x <= 1 + kRounding);
        EXPECT_NEAR(total(p), 1, kRounding * 10) << alpha << " " << spread << " " << n;
        for (size_t j = 0; spread == 0 && j < n; ++j)
          EXPECT_NEAR(p[j] * static_cast<double>(n), 1, 10 * kRounding);
      }
  Row far(50, 0.0);
  far[7] = 100;
  for (const double alpha : {1.25, 1.5, 2.0}) {
    const Row p = weights(alpha, far);
    for (size_t j = 0; j < p.size(); ++j) EXPECT_EQ(p[j], j == 7 ? 1 : 0);
  }
}

// With all keys in the support, sparsemax is z - mean + 1/n.
TEST(Entmax, SparsemaxOfASmallSpreadIsLinear) {
  const Row z = {0.01, -0.02, 0.03, 0.0}, p = weights(2, z);
  for (size_t j = 0; j < z.size(); ++j) EXPECT_NEAR(p[j], z[j] - 0.005 + 0.25, 1e-6);
}

// A power that is whole is made of products, its neighbour by std::pow.
TEST(Entmax, WholePowersContinueTheirNeighbours) {
  Row z(203);
  Rng random = rng(5, "z", 0);
  for (double& x : z) x = 3 * random.normal();
  for (int k = 1; k <= 9; ++k) {
    const Row p = weights(1 + 1.0 / k, z), near = weights(1 + 1.0 / (k + 1e-5), z);
    for (size_t j = 0; j < z.size(); ++j) EXPECT_NEAR(p[j], near[j], 2e-5) << k << " " << j;
  }
}

TEST(Entmax, ApproachesSoftmaxAsAlphaFalls) {
  const Row z = {0.3, -1.2, 2.0, 0.0, 0.7}, p = softmax(z);
  double before = 1;
  for (const double alpha : {1.5, 1.1, 1.01, 1.001}) {
    double distance = 0;
    const Row w = weights(alpha, z);
    for (size_t j = 0; j < z.size(); ++j) distance += std::abs(w[j] - p[j]);
    EXPECT_LT(distance, before);
    before = distance;
  }
  EXPECT_LT(before, 2e-3);
}

TEST(Entmax, DecodesWhatItsForwardGives) {
  for (const double alpha : {1.25, 1.5, 2.0}) {
    perturbed::expect_decoding("entmax", {{"alpha", alpha}}, 4);
    perturbed::expect_decoding("entmax", {{"alpha", alpha}}, 2);
  }
}

TEST(Entmax, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("entmax", {});
}

TEST(Entmax, RegressionStepsOfADecoderReuseTheirWorkspace) {
  constexpr int64_t kLength = 300;
  const auto attention = find_variant("entmax").build({2, 8, kLength, true, 1, {}}, {});
  const auto decoder = attention->decoder(1, kLength);
  const Tensor row = bridge::normal({1, 2, 1, 8}, "row"), out(row.shape());
  decoder->step(row, row, row, out);
  const int64_t calls = memory_use().system_calls;
  for (int64_t i = 1; i < kLength; ++i) decoder->step(row, row, row, out);
  EXPECT_EQ(memory_use().system_calls, calls);
}

// sigmoid against its equation, its limit as the bias falls, doubled keys, and the trap of a bias
// that follows the length.

using perturbed::Given;

Given biased(double bias) { return {{"bias_from", std::string("value")}, {"bias", bias}}; }

perturbed::Twin sigmoid_twin(double bias) {
  return [bias](const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
    return perturbed::by_rows(x, seen, [bias](std::vector<double> z) {
      for (double& w : z) w = 0.5 * (1 + std::tanh((w + bias) / 2));
      return z;
    });
  };
}

TEST(Sigmoid, EqualsItsEquationForwardAndBackward) {
  for (const double bias : {0.0, -3.0})
    perturbed::expect_twin_everywhere("sigmoid", biased(bias), sigmoid_twin(bias));
}

TEST(Sigmoid, BiasIsThatOfTheLongestLength) {
  for (const int64_t n : {9, 33})
    perturbed::expect_twin("sigmoid", {}, {5, n}, {true, {}},
                           sigmoid_twin(-std::log(static_cast<double>(n))));
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
}  // namespace attn::entmax_test
