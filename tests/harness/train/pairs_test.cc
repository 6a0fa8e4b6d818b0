// Pairs of documents: the two-tower head against a sum written out, gradients of every weight,
// padding, both orders, batches with and without the cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/encoder.h"
#include "harness/model/pair_head.h"
#include "tests/harness/train/toy.h"

namespace attn::pairs_test {
namespace {

ModelConfig tiny() {
  ModelConfig config = toy::tiny();
  config.pairs = true;
  return config;
}

// Two examples: documents a, b and c, d, of five tokens each.
Batch pairs(std::vector<int64_t> lengths = {}) {
  return {.size = 2,
          .length = 5,
          .tokens = {1, 2, 3, 4, 5, 6, 5, 2, 2, 1, 3, 3, 1, 6, 2, 4, 4, 5, 1, 1},
          .values = {},
          .lengths = std::move(lengths),
          .targets = {2, 0},
          .documents = 2};
}

constexpr double kRounding = 300 * static_cast<double>(kEpsilon);

void expect_near(const Tensor& a, const Tensor& b, double tolerance = kRounding) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(std::abs(static_cast<double>(a[i] - b[i])) <= tolerance)
        << i << ": " << a[i] << " " << b[i];
}

// x · W + b, in double precision.
std::vector<double> dense(const std::vector<double>& x, const Tensor& weight, const Tensor& bias) {
  std::vector<double> y(static_cast<size_t>(weight.dim(1)));
  for (size_t j = 0; j < y.size(); ++j) {
    y[j] = static_cast<double>(bias[static_cast<int64_t>(j)]);
    for (size_t i = 0; i < x.size(); ++i)
      y[j] += x[i] * static_cast<double>(weight[static_cast<int64_t>(i * y.size() + j)]);
  }
  return y;
}

TEST(PairHead, IsThePapersInteractionAndThreeLayers) {
  const PairHead head(3, 8, 2, 5);
  const Tensor x = Tensor::normal({4, 3}, rng(1, "documents"), 1);
  const Tensor logits = head.forward(Var(x)).value();
  ASSERT_EQ(logits.shape(), (Shape{2, 2}));
  const std::vector<Weight> weights = head.weights();
  ASSERT_EQ(weights.size(), 6u);
  EXPECT_EQ(weights[0].value.shape(), (Shape{12, 8}));
  EXPECT_EQ(weights[2].value.shape(), (Shape{8, 4}));
  EXPECT_EQ(weights[4].value.shape(), (Shape{4, 2}));
  for (int64_t example = 0; example < 2; ++example) {
    std::vector<double> first, second, values;
    for (int64_t i = 0; i < 3; ++i) {
      first.push_back(static_cast<double>(x[example * 6 + i]));
      second.push_back(static_cast<double>(x[example * 6 + 3 + i]));
    }
    values = first;
    values.insert(values.end(), second.begin(), second.end());
    for (size_t i = 0; i < 3; ++i) values.push_back(first[i] * second[i]);
    for (size_t i = 0; i < 3; ++i) values.push_back(first[i] - second[i]);
    for (size_t layer = 0; layer < 6; layer += 2) {
      if (layer > 0)
        for (double& value : values) value = std::max(value, 0.0);
      values = dense(values, weights[layer].value.value(), weights[layer + 1].value.value());
    }
    for (size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(logits[example * 2 + static_cast<int64_t>(c)], values[c], kRounding);
  }
}

TEST(PairsGradients, EveryWeightAgainstCentralDifferences) {
  toy::check_gradients(tiny(), pairs({3, 5, 4, 2}));
}

TEST(Pairs, PaddingOfEitherDocumentDoesNotChangeLogits) {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls}) {
    ModelConfig config = tiny();
    config.pooling = pooling;
    const Encoder model(config);
    const Tensor expected = model.forward(pairs({3, 4, 5, 2})).value();
    ASSERT_EQ(expected.shape(), (Shape{2, 3}));
    Batch garbage = pairs({3, 4, 5, 2});
    garbage.tokens[4] = 0, garbage.tokens[9] = 6, garbage.tokens[17] = 2, garbage.tokens[18] = 0;
    expect_near(model.forward(garbage).value(), expected);
    garbage.tokens[16] = 1;  // inside
    EXPECT_NE(model.forward(garbage).value()[3], expected[3]);
  }
}

// Example by example, and each document on its own: what stands in other examples does not count.
TEST(Pairs, ExamplesDoNotMixAndTheOrderOfDocumentsCounts) {
  const Encoder model(tiny());
  const Tensor both = model.forward(pairs()).value();
  Batch one = pairs();
  one.size = 1;
  one.tokens.erase(one.tokens.begin(), one.tokens.begin() + 10);
  const Tensor alone = model.forward(one).value();
  for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(alone[c], both[3 + c], kRounding);
  std::rotate(one.tokens.begin(), one.tokens.begin() + 5, one.tokens.end());
  const Tensor swapped = model.forward(one).value();
  double difference = 0;
  for (int64_t c = 0; c < 3; ++c)
    difference = std::max(difference, std::abs(static_cast<double>(swapped[c] - alone[c])));
  EXPECT_GT(difference, 1e-3);
}

TEST(Pairs, CountsItsParameters) {
  const int64_t layer = 4 * 4 * 4 + 4 * 4 + 4 * 6 + 6 + 6 * 4 + 4;
  const int64_t head = 16 * 6 + 6 + 6 * 3 + 3 + 3 * 3 + 3;
  EXPECT_EQ(Encoder(tiny()).parameter_count(), 7 * 4 + 5 * 4 + 2 * layer + 2 * 4 + head);
}

TEST(Pairs, RefusesWhatDoesNotFit) {
  const Encoder model(tiny());
  Batch single = pairs();
  single.documents = 1, single.size = 4;
  EXPECT_THROW(model.forward(single), Error);
  EXPECT_THROW(model.forward(pairs({3, 4})), Error);
  ModelConfig config = tiny();
  config.per_token = true;
  EXPECT_THROW(Encoder{config}, Error);
}

}  // namespace
}  // namespace attn::pairs_test
