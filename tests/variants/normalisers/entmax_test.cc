// entmax against sorting (sparsemax and entmax 1.5, as Peters et al. 2019, algorithm 1) and
// bisection, and the identities of its rows.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"
#include "variants/normalisers/normalisers.h"

namespace attn::entmax_test {
namespace {

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

}  // namespace
}  // namespace attn::entmax_test
