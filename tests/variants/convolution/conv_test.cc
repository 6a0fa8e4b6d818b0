// Convolutions over a window: conv and window_mlp.

#include "core/ops/ops.h"
#include "tests/variants/mixers.h"

namespace attn::conv_test {
namespace {

// conv against the sum written out, the identity with one-hot attention, and the traps: padding
// that a bias fills, and a kernel without a middle.

using namespace mixers;

TEST(Conv, EqualsTheSumOverOffsets) {
  for (const bool causal : {false, true})
    for (const int64_t kernel : {1, 3, 5})
      for (const Case& at : cases(causal))
        expect_twin("conv", at, {{"kernel", kernel}}, [&](const auto& x, const auto& w) {
          return oracle::convolution(x, w[0], w[1], causal ? kernel - 1 : kernel / 2, {at.lengths});
        });
}

// Cordonnier et al. 2020, arXiv:1911.03584, theorem 1: a head for each offset δ whose weights are
// one-hot at i + δ, by logits -α·(j - i - δ)² up to what is the same for a whole row.
Tensor by_one_hot_heads(const Tensor& x, const Tensor& weight) {
  const int64_t n = x.dim(1), width = x.dim(2), kernel = weight.dim(0);
  const double alpha = 30, scaled = alpha * std::sqrt(static_cast<double>(width));
  const auto full = find_variant("full").build(
      {.heads = 1, .head_dim = width, .max_len = n, .causal = false, .seed = 0, .params = {}}, {});
  const Tensor total = Tensor::zeros(x.shape());
  for (int64_t k = 0; k < kernel; ++k) {
    const Tensor q = Tensor::zeros({1, 1, n, width}), keys = q.clone();
    for (int64_t i = 0; i < n; ++i) {
      q[i * width] = static_cast<real>(-scaled);
      q[i * width + 1] = static_cast<real>(2 * scaled * static_cast<double>(i + k - kernel / 2));
      keys[i * width] = static_cast<real>(i * i);
      keys[i * width + 1] = static_cast<real>(i);
    }
    const Var found = full->forward(Var(q), Var(keys), Var(with_one_head(x)));
    const Tensor slice({width, width});
    std::copy_n(weight.data() + k * slice.size(), slice.size(), slice.data());
    total.add(matmul(merge_heads(found), Var(slice)).value());
  }
  return total;
}

TEST(Conv, IsAttentionWithOneHotRelativePositionsOnInteriorRows) {
  const int64_t n = 40;
  const Case at{1, 1, n, 6, false, {}};
  const auto conv = build("conv", at, {{"kernel", int64_t{5}}});
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Tensor want = as_mixer(*conv)->mix(Var(x)).value(),
               got = by_one_hot_heads(x, conv->weights()[0].value.value());
  EXPECT_LE(distance(rows_of(got, 0, 2, n - 2), rows_of(want, 0, 2, n - 2)),
            kIsDouble ? 1e-11 : 1e-5);
  // At an end attention weighs what there is by one in all, where convolution adds zeros.
  EXPECT_GE(distance(rows_of(got, 0, 0, 2), rows_of(want, 0, 0, 2)), 0.1);
}

// A bias in rows of padding would reach valid rows of the next layer.
TEST(Conv, RegressionPaddingStaysZeroThroughStackedLayers) {
  const Case at{2, 1, 12, 4, false, {7, 12}};
  const auto conv = build("conv", at, {});
  draw_weights(*conv);
  const Mixer& mixer = *as_mixer(*conv);
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor twice = mixer.mix(mixer.mix(Var(x), at.mask()), at.mask()).value();
  const Tensor alone = mixer.mix(mixer.mix(Var(rows_of(x, 0, 0, 7)))).value();
  EXPECT_LE(distance(rows_of(twice, 0, 0, 7), alone), kIsDouble ? 1e-12 : 1e-6);
  const Tensor padding1 = rows_of(twice, 0, 7, 12);  // outlives the loop
  for (const real value : padding1.values()) EXPECT_EQ(value, 0);
}

TEST(Conv, RefusesAKernelWithoutAMiddle) {
  const VariantInfo& info = find_variant("conv");
  const Params even("conv", info.params, {{"kernel", int64_t{4}}});
  EXPECT_EQ(info.why_not({.q_len = 8, .kv_len = 8, .causal = false}, even),
            "an even kernel has no middle");
  EXPECT_FALSE(info.why_not({.q_len = 8, .kv_len = 8, .causal = true}, even));
}

// window_mlp against its equation written out, its limit for small sums, and the trap: biases in
// rows of padding.

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
}  // namespace attn::conv_test
