// gmlp against its equations in double; how it starts; a gate that is a mean; and the trap of a
// matrix that is not cut to the length at hand.
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"
#include "variants/reference/units.h"

namespace attn::gmlp_test {
namespace {

using namespace mixers;

TEST(GMlp, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const Case& at : cases(causal))
      if (at.len < 100)
        expect_twin("gmlp", at, {{"expansion", int64_t{2}}}, [&](const auto& x, const auto& w) {
          return oracle::spatial_gating(x, w, causal, {at.lengths});
        });
}

Var named(const Attention& attention, const std::string& name) {
  for (const Weight& weight : attention.weights())
    if (weight.name == name) return weight.value;
  return {};
}

// With a matrix of zeros and a bias of ones the gate is 1: each position by itself.
TEST(GMlp, WithoutTheMixtureEachPositionIsByItself) {
  const Case at{1, 1, 20, 6, false, {}};
  const auto gmlp = build("gmlp", at, {});
  const Var spatial = named(*gmlp, "spatial");
  spatial.set_value(Tensor::zeros(spatial.shape()));
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Var half = slice(gelu(linear(Var(x), named(*gmlp, "in"), {})), 2, 0, 12);
  const Tensor want = linear(half, named(*gmlp, "out"), {}).value();
  EXPECT_LE(distance(as_mixer(*gmlp)->mix(Var(x)).value(), want), 20 * kEpsilon);
}

// All weights 1/n and no bias: the gate is the mean of the normalised half, the same everywhere.
TEST(GMlp, AConstantMatrixGatesByTheMean) {
  const Case at{1, 1, 20, 6, false, {}};
  const auto gmlp = build("gmlp", at, {});
  named(*gmlp, "spatial").set_value(Tensor::full({20, 20}, real(0.05)));
  named(*gmlp, "spatial_bias").set_value(Tensor::zeros({20, 1}));
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Var hidden = gelu(linear(Var(x), named(*gmlp, "in"), {}));
  const Var mean = mean_positions(
      layer_norm(slice(hidden, 2, 12, 24), named(*gmlp, "gain"), named(*gmlp, "shift")), {});
  const Tensor want =
      linear(multiply(slice(hidden, 2, 0, 12), reshape(mean, {12})), named(*gmlp, "out"), {})
          .value();
  EXPECT_LE(distance(as_mixer(*gmlp)->mix(Var(x)).value(), want), 100 * kEpsilon);
}

// What is built for 30 positions takes 20, and refuses 31.
TEST(GMlp, RegressionTheMatrixIsCutToTheLength) {
  for (const bool causal : {false, true}) {
    const Case at{1, 1, 30, 6, causal, {}};
    const auto gmlp = build("gmlp", at, {});
    draw_weights(*gmlp);
    const Tensor x = Tensor::normal({1, 20, 6}, rng(3, "x"));
    std::vector<oracle::Array> weights;
    for (const Weight& weight : gmlp->weights())
      weights.push_back(bridge::array_of(flat(weight.value.value())));
    EXPECT_LE(
        bridge::relative_error(
            as_mixer(*gmlp)->mix(Var(x), at.mask()).value(),
            oracle::spatial_gating(bridge::array_of(with_one_head(x)), weights, causal, {}).x),
        50 * kEpsilon);
    EXPECT_THROW(as_mixer(*gmlp)->mix(Var(Tensor::zeros({1, 31, 6})), at.mask()), Error);
  }
}

}  // namespace
}  // namespace attn::gmlp_test
