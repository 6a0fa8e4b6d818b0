// Feature maps: the kernel that random features estimate, its bias and spread, orthogonality,
// padding.
#include "variants/features/feature_maps.h"

#include <gtest/gtest.h>

#include "tests/variants/oracle_bridge.h"

namespace attn::feature_maps_test {
namespace {

TEST(FeatureMaps, OrthogonalBlocksHaveGaussianLengths) {
  constexpr int64_t kHeads = 40, kCount = 19, kDim = 8;
  const Tensor omega = random_directions(kHeads, kCount, kDim, true, rng(1, "omega"));
  double squares = 0, worst = 0;
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t i = 0; i < kCount; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t c = 0; c < kDim; ++c)
          product += static_cast<double>(omega[(h * kCount + i) * kDim + c]) *
                     static_cast<double>(omega[(h * kCount + j) * kDim + c]);
        if (i == j) squares += product;
        if (i != j && i / kDim == j / kDim) worst = std::max(worst, std::abs(product));
      }
  EXPECT_LE(worst, 100 * kEpsilon);
  // The mean of 760 chi-squared numbers of 8 degrees: 8 with deviation 4/sqrt(760) = 0.145.
  EXPECT_NEAR(squares / (kHeads * kCount), 8, 0.6);
}

// exp(x·y) by positive features, for x = y = ±1/√d·1: without the sign fix of the QR this is off by
// 27 %.
TEST(FeatureMaps, KernelEstimateIsUnbiased) {
  constexpr int64_t kDim = 16, kDraws = 400, kFeatures = 32;
  for (const bool orthogonal : {true, false})
    for (const double sign : {1.0, -1.0}) {
      const Tensor x = Tensor::full({1, kDraws, 1, kDim}, static_cast<real>(sign * 0.25));
      const Tensor omega = random_directions(kDraws, kFeatures, kDim, orthogonal, rng(9, "omega"));
      const Features f = features(Var(x), positive_random(omega, 1));
      double mean = 0;
      for (int64_t i = 0; i < kDraws * kFeatures; ++i)
        mean += std::pow(static_cast<double>(f.phi.value()[i]) *
                             std::exp(static_cast<double>(f.log_scale[i / kFeatures])),
                         2) /
                (kDraws * kFeatures);
      // One feature's square is exp(2ω·x - 1) with ω·x ~ N(0, 1): mean e, deviation 20; over 12800
      // draws 0.18.
      EXPECT_NEAR(mean, std::exp(1), 0.5) << orthogonal << " " << sign;
    }
}

TEST(FeatureMaps, PositiveFeaturesEqualTheirFormula) {
  const Tensor x = bridge::normal({1, 2, 5, 3}, "x", 2), omega = bridge::normal({2, 7, 3}, "omega");
  const Features f = features(Var(x), positive_random(omega, 0.7));
  for (int64_t row = 0; row < 10; ++row) {
    double square = 0, largest = 0;
    for (int64_t c = 0; c < 3; ++c)
      square += std::pow(0.7 * static_cast<double>(x[row * 3 + c]), 2);
    for (int64_t m = 0; m < 7; ++m) {
      double product = 0;
      for (int64_t c = 0; c < 3; ++c)
        product += 0.7 * static_cast<double>(x[row * 3 + c]) *
                   static_cast<double>(omega[(row / 5 * 7 + m) * 3 + c]);
      const double phi = static_cast<double>(f.phi.value()[row * 7 + m]);
      EXPECT_NEAR(std::log(phi) + static_cast<double>(f.log_scale[row]), product - square / 2,
                  200 * kEpsilon);
      largest = std::max(largest, phi);
    }
    EXPECT_DOUBLE_EQ(largest, 1);
  }
}

TEST(FeatureMaps, PaddedRowsAreZerosAndGiveNoGradient) {
  const std::vector<int64_t> lengths = {2, 0};
  const Tensor x = bridge::normal({2, 1, 4, 3}, "x"), omega = bridge::normal({1, 5, 3}, "omega");
  bridge::fill_padding(x, lengths, bridge::kNaN);
  const FeatureMap maps[] = {elu_plus_one(), positive_random(omega, 1), relu_random(omega, 1e-3)};
  for (int kind = 0; kind < 3; ++kind) {
    const Var leaf(x, true);
    const Var phi = features(leaf, maps[kind], lengths).phi;
    const Tensor value = phi.value();
    phi.backward(Tensor::full(value.shape(), 1));
    for (int64_t i = 0; i < value.size(); ++i) {
      const bool valid = i / value.dim(3) < 2;
      EXPECT_TRUE(valid ? value[i] > 0 : value[i] == 0) << kind << " " << i;
    }
    for (int64_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(i < 6 ? std::isfinite(leaf.grad()[i]) : leaf.grad()[i] == 0) << kind;
  }
}

TEST(FeatureMaps, EluKeepsSmallValues) {
  const Tensor x = Tensor::of({1, 1, 1, 4}, std::vector<double>{-40, -1, 0, 2});
  const Tensor phi = features(Var(x), elu_plus_one()).phi.value();
  const double want[] = {std::exp(-40.0), std::exp(-1.0), 1, 3};
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(phi[i]) / want[i], 1, 4 * kEpsilon);
}

}  // namespace
}  // namespace attn::feature_maps_test
