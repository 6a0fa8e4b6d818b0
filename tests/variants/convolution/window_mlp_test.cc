// window_mlp against its equation written out, its limit for small sums, and the trap: biases in
// rows of padding.
#include "tests/variants/mixers.h"

namespace attn::window_mlp_test {
namespace {

using namespace mixers;

TEST(WindowMlp, EqualsTheNetworkOverTheWindow) {
  for (const bool causal : {false, true})
    for (const int64_t window : {0, 1, 3})
      for (const Case& at : cases(causal))
        expect_twin("window_mlp", at, {{"window", window}, {"hidden", int64_t{7}}},
                    [&](const auto& x, const auto& w) {
                      return oracle::window_network(x, w, window, {at.lengths});
                    });
}

TEST(WindowMlp, HasAsManyHiddenUnitsAsTheWidthUnlessTold) {
  const Case at{1, 3, 8, 2, false, {}};
  EXPECT_EQ(build("window_mlp", at, {})->weights()[0].value.shape(), Shape({5, 6, 6}));
}

// tanh(e·s) / e -> s: the convolution whose matrices are H_k·U.
TEST(WindowMlp, TendsToAConvolutionForSmallSums) {
  const Case at{1, 1, 20, 4, false, {}};
  const auto network = build("window_mlp", at, {{"window", int64_t{1}}}),
             conv = build("conv", at, {{"kernel", int64_t{3}}});
  const std::vector<Weight> w = network->weights();
  const Tensor h = w[0].value.value(), u = w[2].value.value(), product = Tensor::zeros(h.shape());
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t c = 0; c < 4; ++c) product[i * 4 + j] += h[i * 4 + c] * u[c * 4 + j];
  conv->weights()[0].value.set_value(product);
  const real e = static_cast<real>(kIsDouble ? 1e-4 : 4e-3);
  const auto times = [](const Tensor& t, real factor) {
    const Tensor result = t.clone();
    for (real& value : result.values()) value *= factor;
    return result;
  };
  w[0].value.set_value(times(h, e));
  w[2].value.set_value(times(u, 1 / e));
  const Var x(Tensor::normal(at.rows(), rng(1, "x")));
  EXPECT_LE(distance(as_mixer(*network)->mix(x).value(), as_mixer(*conv)->mix(x).value()),
            kIsDouble ? 1e-7 : 2e-4);  // e²·s²/3, and the rounding of tanh over e
}

TEST(WindowMlp, RegressionPaddingStaysZeroDespiteBiases) {
  const Case at{2, 2, 9, 3, false, {4, 0}};
  const auto network = build("window_mlp", at, {});
  draw_weights(*network);
  const Mixer& mixer = *as_mixer(*network);
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor out = mixer.mix(Var(x), at.mask()).value();
  EXPECT_LE(distance(rows_of(out, 0, 0, 4), mixer.mix(Var(rows_of(x, 0, 0, 4))).value()),
            kIsDouble ? 1e-12 : 1e-6);
  const Tensor padding1 = rows_of(out, 0, 4, 9);  // outlives the loop
  for (const real value : padding1.values()) EXPECT_EQ(value, 0);
  const Tensor padding2 = rows_of(out, 1, 0, 9);  // outlives the loop
  for (const real value : padding2.values()) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace attn::window_mlp_test
