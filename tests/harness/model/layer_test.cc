// A layer against the same layer written out in double loops, pre-norm and post-norm, with and
// without padding.
#include "harness/model/layer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/model/written_out.h"
#include "tests/harness/train/toy.h"

namespace attn::layer_test {
namespace {

using namespace written_out;

constexpr int64_t kWidth = 6, kHeads = 3, kHidden = 5;

Rows layer(const Rows& x, const Named& w, Norm norm, size_t visible) {
  const auto attend = [&](const Rows& y) {
    return attended(y, y, w, "", kHeads, [&](size_t, size_t key) { return key < visible; });
  };
  const auto feed = [&](const Rows& y) { return fed_forward(y, w, ""); };
  if (norm == Norm::pre) {
    const Rows middle = plus(x, attend(normed(x, w, "attention_norm")));
    return plus(middle, feed(normed(middle, w, "feed_forward_norm")));
  }
  const Rows middle = normed(plus(x, attend(x)), w, "attention_norm");
  return normed(plus(middle, feed(middle)), w, "feed_forward_norm");
}

LayerConfig config_of(const VariantInfo& variant, Norm norm, double dropout = 0) {
  return {.variant = &variant,
          .width = kWidth,
          .heads = kHeads,
          .feed_forward = kHidden,
          .max_len = 4,
          .norm = norm,
          .dropout = dropout,
          .seed = 5};
}

TEST(Layer, EqualsTheLayerWrittenOut) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  for (const Norm norm : {Norm::pre, Norm::post})
    for (const bool padded : {false, true}) {
      const Layer made(config_of(plain, norm));
      Named weights;
      for (const Weight& weight : made.weights()) {
        // Gains of one and biases of zero would hide a missing one.
        if (weight.value.shape().rank() == 1)
          weight.value.set_value(Tensor::normal(weight.value.shape(), rng(1, weight.name)));
        weights[weight.name] = weight.value.value();
      }
      EXPECT_EQ(weights.size(), 12u);
      const std::vector<int64_t> lengths =
          padded ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{};
      const Tensor x = Tensor::normal({2, 4, kWidth}, rng(2, "x"));
      const Tensor y = made.forward(Var(x), lengths).value();
      for (int64_t b = 0; b < 2; ++b) {
        Rows rows(4, std::vector<double>(kWidth));
        for (size_t at = 0; at < 4 * kWidth; ++at)
          rows[at / kWidth][at % kWidth] =
              static_cast<double>(x[b * 4 * kWidth + static_cast<int64_t>(at)]);
        const Rows expected = layer(rows, weights, norm, padded && b == 0 ? 2 : 4);
        // Five sums of at most six products of numbers of size 10: a hundred roundings.
        for (size_t at = 0; at < 4 * kWidth; ++at)
          EXPECT_NEAR(static_cast<double>(y[b * 4 * kWidth + static_cast<int64_t>(at)]),
                      expected[at / kWidth][at % kWidth], 100 * 10 * static_cast<double>(kEpsilon));
      }
    }
}

TEST(Layer, DropsOnlyWhenGivenAStream) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  const Layer kept(config_of(plain, Norm::pre)), dropping(config_of(plain, Norm::pre, 0.5));
  const Var x(Tensor::normal({2, 4, kWidth}, rng(2, "x")));
  Rng stream = rng(3, "dropout"), again = rng(3, "dropout");
  const Tensor evaluated = dropping.forward(x, {}).value(),
               trained = dropping.forward(x, {}, &stream).value();
  const Tensor repeated = dropping.forward(x, {}, &again).value(),
               expected = kept.forward(x, {}).value();
  int64_t changed = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(evaluated[i], expected[i]);
    EXPECT_EQ(trained[i], repeated[i]);
    changed += trained[i] != expected[i];
  }
  EXPECT_GT(changed, expected.size() / 2);
}

TEST(Layer, RefusesWhatDoesNotFit) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  LayerConfig config = config_of(plain, Norm::pre);
  config.heads = 4;
  EXPECT_THROW(Layer{config}, Error);
  EXPECT_THROW(
      Layer(config_of(plain, Norm::pre)).forward(Var(Tensor::zeros({2, 4, kWidth + 1})), {}),
      Error);
}

}  // namespace
}  // namespace attn::layer_test
