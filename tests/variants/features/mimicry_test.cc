// The loss that fits features to softmax weights: against its definition in double, at weights that
// are softmax's own, and its gradients; what hedgehog's fit reaches.
#include "variants/features/mimicry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/mimicry.h"
#include "variants/catalog.h"

namespace attn::mimicry_test {
namespace {

using Rows = std::vector<std::vector<double>>;

std::vector<double> row(const oracle::Array& x, int64_t b, int64_t h, int64_t i) {
  const double* const from = x.x.data() + ((b * x.heads + h) * x.len + i) * x.dim;
  return {from, from + x.dim};
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> softmax_of(std::vector<double> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - top);
  for (double& value : x) value /= sum;
  return x;
}

// [softmax(W·x), softmax(-W·x)] of every row.
oracle::Array pairs_of(const oracle::Array& x, const oracle::Array& weight) {
  oracle::Array phi(x.batch, x.heads, x.len, 2 * x.dim);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len; ++i)
        for (const int sign : {1, -1}) {
          std::vector<double> y;
          for (int64_t f = 0; f < x.dim; ++f)
            y.push_back(sign * dot(row(weight, 0, h, f), row(x, b, h, i)));
          const std::vector<double> soft = softmax_of(y);
          std::copy(
              soft.begin(), soft.end(),
              phi.x.begin() + ((b * x.heads + h) * x.len + i) * 2 * x.dim + (sign > 0 ? 0 : x.dim));
        }
  return phi;
}

struct Found {
  double loss = 0, entropy = 0;  // means over rows; entropy: of softmax's weights
};

Found defined_by(const oracle::Array& q, const oracle::Array& k, const oracle::Array& phi_q,
                 const oracle::Array& phi_k, const Mask& mask) {
  Found found;
  int64_t rows = 0;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t valid =
            mask.kv_lengths.empty() ? k.len : mask.kv_lengths[static_cast<size_t>(b)];
        if (q.len == k.len && i >= valid) continue;
        std::vector<double> logits, products;
        for (int64_t j = 0; j < valid && (!mask.causal || j <= i + k.len - q.len); ++j) {
          logits.push_back(dot(row(q, b, h, i), row(k, b, h, j)) /
                           std::sqrt(static_cast<double>(q.dim)));
          products.push_back(dot(row(phi_q, b, h, i), row(phi_k, b, h, j)));
        }
        if (logits.empty()) continue;
        ++rows;
        const std::vector<double> p = softmax_of(logits);
        double sum = 0;
        for (const double product : products) sum += product;
        for (size_t j = 0; j < p.size(); ++j) {
          found.loss -= p[j] * std::log(products[j] / sum);
          if (p[j] > 0) found.entropy -= p[j] * std::log(p[j]);
        }
      }
  found.loss /= static_cast<double>(std::max<int64_t>(1, rows));
  found.entropy /= static_cast<double>(std::max<int64_t>(1, rows));
  return found;
}

struct Inputs {
  Tensor q, k;
};

Inputs inputs_of(int64_t q_len, int64_t kv_len, double scale = 1) {
  return {bridge::normal({2, 3, q_len, 6}, "q", scale),
          bridge::normal({2, 3, kv_len, 6}, "k", scale)};
}

std::unique_ptr<Attention> hedgehog(int64_t kv_len, bool causal) {
  auto attention = find_variant("hedgehog").build({3, 6, kv_len, causal, 1, {}}, {});
  for (const Weight& weight : attention->weights())
    weight.value.set_value(bridge::normal(weight.value.shape(), weight.name.c_str()));
  return attention;
}

oracle::Array loss_of(const oracle::Array& q, const oracle::Array& k, const oracle::Array& of_q,
                      const oracle::Array& of_k, const Mask& mask) {
  oracle::Array loss(1, 1, 1, 1);
  loss.x[0] = defined_by(q, k, pairs_of(q, of_q), pairs_of(k, of_k), mask).loss;
  return loss;
}

TEST(Mimicry, IsTheCrossEntropyToSoftmaxWithItsGradients) {
  for (const auto& [q_len, kv_len] :
       {std::pair<int64_t, int64_t>{1, 1}, {63, 63}, {64, 64}, {65, 65}, {5, 70}, {70, 9}})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {kv_len / 2, kv_len};
        const auto attention = hedgehog(kv_len, causal);
        const auto [q, k] = inputs_of(q_len, kv_len);
        oracle::Array of_q = bridge::array_of(q), of_k = bridge::array_of(k);
        bridge::fill_padding(k, mask.kv_lengths, bridge::kNaN);
        if (q_len == kv_len) bridge::fill_padding(q, mask.kv_lengths, bridge::kNaN);
        const Var loss = as_mimicking(*attention)->mimicry_loss(q, k, mask);
        const std::vector<Weight> weights = attention->weights();
        const std::vector<Tensor> values = {weights[0].value.value(), weights[1].value.value()};
        const auto twin = [&](const std::vector<oracle::Array>& moved) {
          return loss_of(of_q, of_k, moved[0], moved[1], mask);
        };
        const double want = twin({bridge::array_of(values[0]), bridge::array_of(values[1])}).x[0];
        EXPECT_NEAR(static_cast<double>(loss.value()[0]), want, 200 * kEpsilon * (1 + want))
            << q_len << "x" << kv_len << " causal " << causal << " padded " << padded;
        loss.backward();
        bridge::expect_gradients(values, {weights[0].value.grad(), weights[1].value.grad()},
                                 Tensor::full({1, 1}, 1), twin);
      }
}

// Features whose products are softmax's weights: the loss is their entropy and has no slope.
TEST(Mimicry, IsLeastAtTheWeightsOfSoftmax) {
  for (const bool causal : {false, true}) {
    constexpr int64_t kLen = 70;
    const auto [q, k] = inputs_of(kLen, kLen);
    const oracle::Array of_q = bridge::array_of(q), of_k = bridge::array_of(k);
    const Tensor own({2, 3, kLen, kLen}), one({2, 3, kLen, kLen});
    one.fill(0);
    for (int64_t u = 0; u < 6; ++u)
      for (int64_t i = 0; i < kLen; ++i) {
        one[(u * kLen + i) * kLen + i] = 1;
        std::vector<double> logits;
        for (int64_t j = 0; j < kLen; ++j)
          logits.push_back(dot(row(of_q, u / 3, u % 3, i), row(of_k, u / 3, u % 3, j)) /
                           std::sqrt(6.0));
        const std::vector<double> p = softmax_of(logits);
        for (int64_t j = 0; j < kLen; ++j)  // any factor of a row drops out
          own[(u * kLen + i) * kLen + j] = static_cast<real>(p[static_cast<size_t>(j)] * 3);
      }
    const Var phi_q(own, true), phi_k(one, true);
    const Mask mask{causal, {}};
    const Var loss = softmax_mimicry(q, k, phi_q, phi_k, mask);
    const double entropy =
        defined_by(of_q, of_k, bridge::array_of(own), bridge::array_of(one), mask).entropy;
    EXPECT_NEAR(static_cast<double>(loss.value()[0]), entropy, 100 * kEpsilon);
    loss.backward();
    // A row's share of the mean is 1/420; a slope of the loss elsewhere is of that size.
    for (const Var& phi : {phi_q, phi_k})
      for (const real slope : phi.grad().values())
        ASSERT_LE(std::abs(static_cast<double>(slope)), 200 * kEpsilon);
  }
}

TEST(Mimicry, NothingSeenIsNoLoss) {
  const auto attention = hedgehog(5, false);
  const auto [q, k] = inputs_of(5, 5);
  const Var loss = as_mimicking(*attention)->mimicry_loss(q, k, {false, {0, 0}});
  EXPECT_EQ(loss.value()[0], 0);
  loss.backward();
  for (const Weight& weight : attention->weights())
    for (const real slope : weight.value.grad().values()) EXPECT_EQ(slope, 0);
}

TEST(Mimicry, TheNumberOfThreadsChangesNoBitOfTheLoss) {
  const auto [q, k] = inputs_of(70, 70);
  std::vector<Tensor> found;
  for (const int threads : {1, 4}) {
    const ScopedThreads scope(threads);
    const auto attention = hedgehog(70, true);
    const Var loss = as_mimicking(*attention)->mimicry_loss(q, k, {true, {}});
    found.push_back(loss.value());
  }
  EXPECT_TRUE(bridge::same_bits(found[0], found[1]));
}

// On random inputs plain descent takes more than half of the divergence of softmax's weights away.
TEST(Mimicry, DescentBringsHedgehogToSoftmax) {
  const auto attention = find_variant("hedgehog").build({3, 6, 32, true, 1, {}}, {});
  const auto [q, k] = inputs_of(32, 32);
  const Mask mask{true, {}};
  const std::vector<Weight> weights = attention->weights();
  const double entropy = [&] {
    const oracle::Array of_q = bridge::array_of(q), of_k = bridge::array_of(k);
    return defined_by(of_q, of_k, pairs_of(of_q, bridge::array_of(weights[0].value.value())),
                      pairs_of(of_k, bridge::array_of(weights[1].value.value())), mask)
        .entropy;
  }();
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    const Var loss = as_mimicking(*attention)->mimicry_loss(q, k, mask);
    last = static_cast<double>(loss.value()[0]) - entropy;
    if (step == 0) first = last;
    loss.backward();
    for (const Weight& weight : weights) {
      const Tensor moved = weight.value.value().clone();
      for (int64_t i = 0; i < moved.size(); ++i) moved[i] -= 2 * weight.value.grad()[i];
      weight.value.set_value(moved);
      weight.value.zero_grad();
    }
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(last, 0);
  EXPECT_LT(last, first / 2) << first << " before, " << last << " after";
}

}  // namespace
}  // namespace attn::mimicry_test
