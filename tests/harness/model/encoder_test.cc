// The encoder and the head that unfolds compressed rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "harness/model/encoder.h"
#include "harness/model/unfold_head.h"
#include "tests/harness/train/toy.h"

namespace attn::encoder_test {
namespace {

// The encoder: gradients of every weight against central differences, padding, order, causality,
// dropout, equal weights.

using toy::check_gradients;
using toy::plain;
using toy::tiny;

Batch tokens(std::vector<int64_t> lengths = {}) {
  return {.size = 2,
          .length = 5,
          .tokens = {1, 2, 3, 4, 5, 6, 5, 2, 2, 1},
          .values = {},
          .lengths = std::move(lengths),
          .targets = {2, 0}};
}

// But for what starts as a constant.
TEST(EncoderWeights, OfEachLayerAreDrawnAnew) {
  std::map<std::string, Tensor> values;
  for (const Weight& weight : Encoder(tiny()).weights())
    values.emplace(weight.name, weight.value.value());
  int drawn = 0;
  for (const auto& [name, first] : values) {
    if (!name.starts_with("layers.0.") || first[0] == first[1]) continue;
    const Tensor& second = values.at("layers.1." + name.substr(9));
    ++drawn;
    EXPECT_NE(first[0], second[0]) << name;
  }
  EXPECT_GE(drawn, 6) << "four projections of attention, two of the feed-forward";
}

TEST(EncoderGradients, TokensLearnedPositionsMeanPreNorm) {
  check_gradients(tiny(), tokens({3, 5}));
}

TEST(EncoderGradients, ValuesSinusoidsClsPostNorm) {
  ModelConfig config = tiny();
  config.vocab = 0;
  config.layer.norm = Norm::post;
  config.positions = Positions::sinusoidal;
  config.pooling = Pooling::cls;
  const Batch batch{.size = 2,
                    .length = 5,
                    .tokens = {},
                    .values = {.1f, -1, 2, .4f, 0, 1, .3f, -.2f, .7f, .9f},
                    .lengths = {5, 4},
                    .targets = {1, 2}};
  check_gradients(config, batch);
}

TEST(EncoderGradients, CausalLabelsPerToken) {
  ModelConfig config = tiny();
  config.per_token = true;
  config.layer.causal = true;
  Batch batch = tokens();
  batch.targets = {-1, 0, 2, -1, 1, 1, -1, 2, 0, -1};
  check_gradients(config, batch);
}

TEST(EncoderGradients, RotaryPositionsKeysSharedByTheHeads) {
  ModelConfig config = tiny();
  config.layer.kv_heads = 1;
  config.positions = Positions::rotary;
  config.pooling = Pooling::cls;
  check_gradients(config, tokens({3, 5}));
}

void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (int64_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(std::abs(static_cast<double>(a[i] - b[i])) <= tolerance)
        << i << ": " << a[i] << " " << b[i];
}

// Sums of other lengths add in another order: some hundred roundings of numbers of size 1.
constexpr double kRounding = 300 * static_cast<double>(kEpsilon);

TEST(Encoder, PaddingDoesNotChangeLogits) {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls}) {
    ModelConfig config = tiny();
    config.pooling = pooling;
    const Encoder model(config);
    const Tensor expected = model.forward(tokens({3, 4})).value();
    Batch garbage = tokens({3, 4});
    garbage.tokens[3] = 6, garbage.tokens[4] = 0, garbage.tokens[9] = 5;
    expect_near(model.forward(garbage).value(), expected, kRounding);
    const Batch alone{.size = 1, .length = 3, .tokens = {1, 2, 3}};
    const Tensor short_logits = model.forward(alone).value();
    for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(short_logits[c], expected[c], kRounding);
  }
}

TEST(Encoder, ForgetsTheOrderWithoutPositions) {
  for (const Positions positions :
       {Positions::none, Positions::learned, Positions::sinusoidal, Positions::rotary}) {
    ModelConfig config = tiny();
    config.positions = positions;
    const Encoder model(config);
    Batch batch = tokens({4, 5});
    const Tensor before = model.forward(batch).value();
    std::swap(batch.tokens[0], batch.tokens[2]);
    std::reverse(batch.tokens.begin() + 5, batch.tokens.end());
    const Tensor after = model.forward(batch).value();
    if (positions == Positions::none) {
      expect_near(after, before, kRounding);
    } else {
      for (int64_t i = 0; i < before.size(); ++i)
        EXPECT_GT(std::abs(static_cast<double>(after[i] - before[i])), 1e-4);
    }
  }
}

TEST(Encoder, SeesNoFutureWhenCausal) {
  ModelConfig config = tiny();
  config.per_token = true;
  config.layer.causal = true;
  const Encoder model(config);
  Batch batch = tokens();
  const Tensor before = model.forward(batch).value();
  ASSERT_EQ(before.shape(), (Shape{2, 5, 3}));
  batch.tokens[3] = 1;
  const Tensor after = model.forward(batch).value();
  for (int64_t i = 0; i < before.size(); ++i) {
    const bool later = i / 3 == 3 || i / 3 == 4;
    EXPECT_EQ(before[i] != after[i], later) << i;
  }
}

TEST(Encoder, DropsNothingInEvaluation) {
  ModelConfig config = tiny();
  const Tensor expected = Encoder(config).forward(tokens()).value();
  config.layer.dropout = 0.5;
  const Encoder model(config);
  expect_near(model.forward(tokens()).value(), expected, 0);
  Rng stream = rng(1, "dropout");
  const Tensor dropped = model.forward(tokens(), &stream).value();
  EXPECT_NE(dropped[0], expected[0]);
}

TEST(Encoder, CountsItsParameters) {
  const int64_t layer = 4 * 4 * 4 + 4 * 4 + 4 * 6 + 6 + 6 * 4 + 4;
  const int64_t rest = 2 * 4 + 4 * 3 + 3;
  EXPECT_EQ(Encoder(tiny()).parameter_count(), 7 * 4 + 5 * 4 + 2 * layer + rest);
  ModelConfig config = tiny();
  config.vocab = 0;
  config.pooling = Pooling::cls;
  config.layer.norm = Norm::post;
  EXPECT_EQ(Encoder(config).parameter_count(), 2 * 4 + 4 + 6 * 4 + 2 * layer + rest - 2 * 4);
  ModelConfig shared = tiny();
  shared.layer.kv_heads = 1;
  shared.positions = Positions::rotary;
  const int64_t narrower = layer - 2 * 4 * 2;
  EXPECT_EQ(Encoder(shared).parameter_count(), 7 * 4 + 2 * narrower + rest);
}

TEST(Encoder, SharesEveryWeightButTheVariantsOwn) {
  const VariantInfo averaging = toy::variant<toy::Averaging>("averaging");
  ModelConfig config = tiny();
  std::map<std::string, Tensor> weights;
  for (const Weight& weight : Encoder(config).weights())
    EXPECT_TRUE(weights.emplace(weight.name, weight.value.value()).second)
        << weight.name << " twice";
  config.layer.variant = &averaging;
  size_t shared = 0;
  std::vector<std::string> own;
  for (const Weight& weight : Encoder(config).weights()) {
    const auto found = weights.find(weight.name);
    if (found == weights.end()) {
      own.push_back(weight.name);
      continue;
    }
    ++shared;
    expect_near(weight.value.value(), found->second, 0);
  }
  EXPECT_EQ(shared, weights.size());
  EXPECT_EQ(own, (std::vector<std::string>{"layers.0.attention.gain", "layers.1.attention.gain"}));
}

TEST(Encoder, RefusesWhatDoesNotFit) {
  ModelConfig config = tiny();
  config.layer.causal = true;
  config.pooling = Pooling::cls;
  EXPECT_THROW(Encoder{config}, Error);
  const Encoder model(tiny());
  Batch batch = tokens();
  batch.tokens.pop_back();
  EXPECT_THROW(model.forward(batch), Error);
  EXPECT_THROW(model.forward(tokens({1})), Error);
  Batch longer = tokens();
  longer.length = 10, longer.size = 1;
  EXPECT_THROW(model.forward(longer), Error);
}

// The head that reads a sequence from one vector: against the decoder written out position by
// position in double precision, and its gradients against central differences.

constexpr int64_t kSize = 3, kWidth = 4, kHidden = 6, kLength = 5, kClasses = 2;

Tensor vectors() { return Tensor::normal({kSize, kWidth}, rng(1, "vectors"), 1); }

double at(const Weight& weight, int64_t row, int64_t column) {
  const Tensor& value = weight.value.value();
  return static_cast<double>(value[row * value.dim(-1) + column]);
}

TEST(UnfoldHead, AddsThePositionToTheVectorBeforeTheHiddenLayer) {
  const UnfoldHead head(kWidth, kHidden, kLength, kClasses, 5);
  const std::vector<Weight> w = head.weights();
  ASSERT_EQ(w.size(), 5u);
  for (const size_t bias : {2u, 4u})  // so that they count
    for (real& entry : w[bias].value.value().values())
      entry = real(0.25) * static_cast<real>(&entry - w[bias].value.value().data() + 1);
  const Tensor x = vectors();
  const Tensor logits = head.forward(Var(x)).value();
  ASSERT_EQ(logits.shape(), (Shape{kSize, kLength, kClasses}));
  for (int64_t row = 0; row < logits.size() / kClasses; ++row) {
    const int64_t example = row / kLength, place = row % kLength;
    std::vector<double> hidden;
    for (int64_t j = 0; j < kHidden; ++j) {
      double sum = at(w[2], 0, j);
      for (int64_t i = 0; i < kWidth; ++i)
        sum += (static_cast<double>(x[example * kWidth + i]) + at(w[0], place, i)) * at(w[1], i, j);
      hidden.push_back(sum * std::erfc(-sum / std::sqrt(2.0)) / 2);
    }
    for (int64_t c = 0; c < kClasses; ++c) {
      double expected = at(w[4], 0, c);
      for (int64_t j = 0; j < kHidden; ++j)
        expected += hidden[static_cast<size_t>(j)] * at(w[3], j, c);
      // Three products of up to 6 terms around 1 each: 100 roundings are ample.
      EXPECT_NEAR(logits[row * kClasses + c], expected, 100 * static_cast<double>(kEpsilon));
    }
  }
}

TEST(UnfoldHead, GradientsOfWeightsAndInputAgainstCentralDifferences) {
  const UnfoldHead head(kWidth, kHidden, kLength, kClasses, 5);
  const Var x(vectors(), true);
  const std::vector<int32_t> targets = {0, 1, -1, 1, 0, 1, 1, 0, -1, -1, 0, 0, 1, 1, -1};
  const auto loss = [&] { return cross_entropy(head.forward(x), targets); };
  loss().backward();
  const double step = std::cbrt(static_cast<double>(kEpsilon)),
               tolerance = (kIsDouble ? 1 : 10) * step * step;
  std::vector<Weight> all = head.weights();
  all.push_back({"x", x});
  for (const Weight& weight : all) {
    ASSERT_TRUE(weight.value.grad().defined()) << weight.name;
    for (real& entry : weight.value.value().values()) {
      const NoGrad no_grad;
      const int64_t i = &entry - weight.value.value().data();
      const real before = entry;
      entry = before + static_cast<real>(step);
      const double above = static_cast<double>(loss().value()[0]);
      entry = before - static_cast<real>(step);
      const double below = static_cast<double>(loss().value()[0]);
      entry = before;
      EXPECT_TRUE(std::abs(static_cast<double>(weight.value.grad()[i]) -
                           (above - below) / (2 * step)) <= 20 * tolerance)
          << weight.name << "[" << i << "]";
    }
  }
}

TEST(UnfoldHead, CanTellItsPositionsApart) {
  const UnfoldHead head(kWidth, kHidden, kLength, kClasses, 5);
  const Tensor logits = head.forward(Var(Tensor::full({1, kWidth}, 1))).value();
  for (int64_t a = 0; a < kLength; ++a)
    for (int64_t b = 0; b < a; ++b)
      EXPECT_GT(std::abs(static_cast<double>(logits[a * kClasses] - logits[b * kClasses])), 1e-4);
}

}  // namespace
}  // namespace attn::encoder_test
