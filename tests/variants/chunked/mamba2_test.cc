// mamba2 against its equations in double, with all gradients and that of A_log; a constant step,
// which is retention; a step of 0, which leaves the state; no decay.
#include <algorithm>
#include <array>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"

namespace attn::mamba2_test {
namespace {

using stepwise::Array;
using stepwise::Index;

std::unique_ptr<Attention> build_mamba2(int64_t heads, int64_t dim, int64_t len) {
  return find_variant("mamba2").build({heads, dim, len, true, 3, {}}, {});
}

Var answer(const Attention& mamba2, const stepwise::Drawn& x,
           const std::vector<int64_t>& lengths = {}) {
  return mamba2.forward(x.vars[0], x.vars[1], x.vars[2], {true, lengths}, std::array{x.vars[3]});
}

double step_of(double dt) { return std::log(1 + std::exp(dt)); }

// h_t = exp(-exp(A_log)·Δ_t)·h_{t-1} + Δ_t·B_tᵀ·x_t, y_t = C_t·h_t; x holds C, B, x, dt and A_log.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const auto step = [&](Index b, Index h, Index t, Index) { return step_of(x[3].at(b, h, t, 0)); };
  const auto decay = [&](Index b, Index h, Index t, Index) {
    return std::exp(-std::exp(x[4].x[static_cast<size_t>(h)]) * step(b, h, t, 0));
  };
  return stepwise::outputs(x[0], x[1], x[2], 1, decay, step, lengths);
}

TEST(Mamba2, EqualsItsEquations) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {17, 8}}) {
    const auto mamba2 = build_mamba2(2, 5, 17);
    const Var a_log = mamba2->weights()[0].value;
    const stepwise::Drawn x({2, 2, 17, 5}, {1}, lengths);
    for (real& value : x.all[3].values()) value -= real(3);  // steps near those of the start
    const Var out = answer(*mamba2, x, lengths);
    std::vector<Tensor> inputs = x.all;
    inputs.push_back(a_log.value().reshaped({1, 1, 1, 2}));
    std::vector<Array> arrays;
    for (const Tensor& t : inputs) arrays.push_back(bridge::array_of(t));
    EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, lengths).x), 100 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    grads.push_back(a_log.grad());
    bridge::expect_gradients(inputs, grads, seed,
                             [&](const std::vector<Array>& moved) { return twin(moved, lengths); });
  }
}

TEST(Mamba2, AConstantStepIsRetention) {
  const auto mamba2 = build_mamba2(2, 4, 90);
  const Tensor a_log = mamba2->weights()[0].value.value();
  const stepwise::Drawn x({1, 2, 90, 4}, {1}, {});
  x.all[3].fill(-3);
  const double step = step_of(-3);
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]);
  const Array want = oracle::weighted_sum(
      q, bridge::array_of(x.all[2]), {.causal = true}, [&](Index b, Index h, Index i, Index j) {
        const double gamma = std::exp(-std::exp(static_cast<double>(a_log[h])) * step);
        return step * oracle::dot(q.row(b, h, i), k.row(b, h, j)) *
               std::pow(gamma, static_cast<double>(i - j));
      });
  EXPECT_LE(bridge::relative_error(answer(*mamba2, x).value(), want.x), 100 * kEpsilon);
}

// A = 0: linear attention on Δ·x.
TEST(Mamba2, WithoutDecayIsUnnormalisedLinearAttention) {
  const auto mamba2 = build_mamba2(1, 4, 30);
  mamba2->weights()[0].value.set_value(Tensor::full({1}, -200));  // e^-200 rounds to no decay
  const stepwise::Drawn x({1, 1, 30, 4}, {1}, {});
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]),
              dt = bridge::array_of(x.all[3]);
  const Array want = oracle::weighted_sum(
      q, bridge::array_of(x.all[2]), {.causal = true}, [&](Index b, Index h, Index i, Index j) {
        return step_of(dt.at(b, h, j, 0)) * oracle::dot(q.row(b, h, i), k.row(b, h, j));
      });
  EXPECT_LE(bridge::relative_error(answer(*mamba2, x).value(), want.x), 50 * kEpsilon);
}

// A step of 0 neither decays nor writes: a query repeated there gets the answer of before.
TEST(Mamba2, AStepOfZeroLeavesTheState) {
  const auto mamba2 = build_mamba2(1, 4, 12);
  const stepwise::Drawn x({1, 1, 12, 4}, {1}, {});
  for (int64_t t = 7; t < 12; ++t) {
    x.all[3][t] = -200;  // softplus rounds to 0
    std::copy_n(x.all[0].data() + 6 * 4, 4, x.all[0].data() + t * 4);
  }
  const Tensor out = answer(*mamba2, x).value();
  for (int64_t i = 7 * 4; i < 12 * 4; ++i) EXPECT_EQ(out[i], out[6 * 4 + i % 4]);
}

// Dao and Gu's start: steps in [1e-3, 0.1], rates in [1, 16].
TEST(Mamba2, StartsWithItsStepsAndRates) {
  const auto mamba2 = build_mamba2(500, 2, 4);
  double least_step = 1, most_step = 0, least_rate = 100, most_rate = 0;
  for (const double bias : mamba2->gates()[0].bias) {
    least_step = std::min(least_step, step_of(bias)),
    most_step = std::max(most_step, step_of(bias));
  }
  for (const real a_log : mamba2->weights()[0].value.value().values()) {
    const double rate = std::exp(static_cast<double>(a_log));
    least_rate = std::min(least_rate, rate), most_rate = std::max(most_rate, rate);
  }
  EXPECT_GE(least_step, 0.999e-3);
  EXPECT_LE(least_step, 1.1e-3);
  EXPECT_GE(most_step, 0.09);
  EXPECT_LE(most_step, 0.1001);
  EXPECT_GE(least_rate, 0.999);
  EXPECT_LE(least_rate, 1.3);
  EXPECT_GE(most_rate, 15.5);
  EXPECT_LE(most_rate, 16.001);
}

}  // namespace
}  // namespace attn::mamba2_test
