// recurrent against its equations written out, both cells, one and both directions; saturated
// gates; and the traps: the reset gate's place, padding in the state, the first position of the way
// back.
#include "tests/variants/mixers.h"

namespace attn::recurrent_test {
namespace {

using namespace mixers;
using oracle::CellKind;

Given given(const char* cell, const char* directions) {
  return {{"cell", std::string(cell)}, {"directions", std::string(directions)}};
}
CellKind cell_of(const std::string& cell) {
  return cell == "lstm" ? CellKind::lstm : CellKind::gru;
}

TEST(Recurrent, EqualsItsEquations) {
  for (const char* cell : {"lstm", "gru"})
    for (const bool causal : {false, true})
      for (const Case& at : cases(causal))
        expect_twin("recurrent", at, given(cell, "one"), [&](const auto& x, const auto& w) {
          return oracle::recurrent(x, w, cell_of(cell), false, {at.lengths});
        });
}

TEST(Recurrent, BothDirectionsAreHalvesOfTheWidth) {
  for (const char* cell : {"lstm", "gru"})
    for (const Case& at : cases(false)) {
      if (at.rows()[2] % 2 == 1) continue;
      expect_twin("recurrent", at, given(cell, "both"), [&](const auto& x, const auto& w) {
        const auto half = static_cast<std::ptrdiff_t>(w.size() / 2);
        const std::vector<oracle::Array> there(w.begin(), w.begin() + half),
            back(w.begin() + half, w.end());
        return oracle::beside(oracle::recurrent(x, there, cell_of(cell), false, {at.lengths}),
                              oracle::recurrent(x, back, cell_of(cell), true, {at.lengths}));
      });
    }
}

// Gates of σ(40) = 1: c is the running sum of tanh(x·W_g), the limit of an LSTM that forgets
// nothing.
TEST(Recurrent, OpenGatesOfAnLstmAddUp) {
  const Case at{1, 1, 30, 3, true, {}};
  const auto lstm = build("recurrent", at, given("lstm", "one"));
  const std::vector<Weight> w = lstm->weights();  // input, bias, state
  const Tensor bias = Tensor::full({12}, 40), input = w[0].value.value();
  std::fill_n(bias.data() + 6, 3, real(0));
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 12; ++j)
      if (j / 3 != 2) input[i * 12 + j] = 0;
  w[1].value.set_value(bias);
  w[2].value.set_value(Tensor::zeros({3, 12}));
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Tensor h = as_mixer(*lstm)->mix(Var(x), at.mask()).value();
  std::vector<double> sums(3, 0.0);
  for (int64_t t = 0; t < 30; ++t)
    for (int64_t j = 0; j < 3; ++j) {
      double g = 0;
      for (int64_t i = 0; i < 3; ++i)
        g += static_cast<double>(x[t * 3 + i]) * static_cast<double>(input[i * 12 + 6 + j]);
      sums[static_cast<size_t>(j)] += std::tanh(g);
      EXPECT_NEAR(static_cast<double>(h[t * 3 + j]), std::tanh(sums[static_cast<size_t>(j)]),
                  kIsDouble ? 1e-12 : 1e-5);
    }
}

// The two forms of the GRU differ wherever the state's part of the candidate does not vanish.
TEST(Recurrent, RegressionResetGateActsAfterTheProduct) {
  const Case at{1, 1, 12, 4, true, {}};
  const auto gru = build("recurrent", at, given("gru", "one"));
  draw_weights(*gru);
  std::vector<oracle::Array> w;
  for (const Weight& weight : gru->weights())
    w.push_back(bridge::array_of(flat(weight.value.value())));
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const oracle::Array rows = bridge::array_of(with_one_head(x));
  const Tensor got = as_mixer(*gru)->mix(Var(x), at.mask()).value();
  const auto off = [&](CellKind cell) {
    return bridge::relative_error(got, oracle::recurrent(rows, w, cell, false, {}).x);
  };
  EXPECT_LE(off(CellKind::gru), kIsDouble ? 1e-12 : 2e-6);
  EXPECT_GE(off(CellKind::gru_reset_before), 1e-2);
}

TEST(Recurrent, RegressionPaddingLeavesTheStateAsItIs) {
  for (const char* cell : {"lstm", "gru"}) {
    const Case at{1, 1, 9, 4, false, {5}};
    const auto recurrent = build("recurrent", at, given(cell, "one"));
    draw_weights(*recurrent);
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    const Tensor h = as_mixer(*recurrent)->mix(Var(x), at.mask()).value();
    for (int64_t t = 5; t < 9; ++t)
      EXPECT_TRUE(bridge::same_bits(rows_of(h, 0, t, t + 1), rows_of(h, 0, 4, 5))) << cell;
  }
}

// From the end of the padding it would arrive at the last valid position with a state.
TEST(Recurrent, RegressionTheWayBackBeginsAtTheLastValidPosition) {
  for (const char* cell : {"lstm", "gru"}) {
    const Case at{2, 1, 9, 4, false, {5, 9}};
    const auto recurrent = build("recurrent", at, given(cell, "both"));
    draw_weights(*recurrent);
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    const Tensor padded = as_mixer(*recurrent)->mix(Var(x), at.mask()).value(),
                 alone = as_mixer(*recurrent)->mix(Var(rows_of(x, 0, 0, 5))).value();
    EXPECT_LE(distance(rows_of(padded, 0, 0, 5), alone), kIsDouble ? 1e-13 : 1e-6) << cell;
  }
}

}  // namespace
}  // namespace attn::recurrent_test
