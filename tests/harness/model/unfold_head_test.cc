// The head that reads a sequence from one vector: against the decoder written out position by
// position in double precision, and its gradients against central differences.
#include "harness/model/unfold_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/ops/ops.h"

namespace attn::unfold_head_test {
namespace {

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
}  // namespace attn::unfold_head_test
