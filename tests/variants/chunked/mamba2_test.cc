// mamba2 and rwkv: state spaces with decays that follow the input.

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/reference/gated.h"

namespace attn::mamba2_test {
namespace {

// mamba2 against its equations in double, with all gradients and that of A_log; a constant step,
// which is retention; a step of 0, which leaves the state; no decay.

using stepwise::answer;
using stepwise::Array;
using stepwise::build;
using stepwise::Index;

double step_of(double dt) { return std::log(1 + std::exp(dt)); }

// h_t = exp(-exp(A_log)·Δ_t)·h_{t-1} + Δ_t·B_tᵀ·x_t, y_t = C_t·h_t; x holds C, B, x, dt and A_log.
Array mamba2_twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const auto step = [&](Index b, Index h, Index t, Index) { return step_of(x[3].at(b, h, t, 0)); };
  const auto decay = [&](Index b, Index h, Index t, Index) {
    return std::exp(-std::exp(x[4].x[static_cast<size_t>(h)]) * step(b, h, t, 0));
  };
  return stepwise::outputs(x[0], x[1], x[2], 1, decay, step, lengths);
}

TEST(Mamba2, EqualsItsEquations) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {17, 8}}) {
    const auto mamba2 = build("mamba2", 2, 5, 17);
    const Var a_log = mamba2->weights()[0].value;
    const stepwise::Drawn x({2, 2, 17, 5}, {1}, lengths);
    for (real& value : x.all[3].values()) value -= real(3);  // steps near those of the start
    const Var out = answer(*mamba2, x, lengths);
    std::vector<Tensor> inputs = x.all;
    inputs.push_back(a_log.value().reshaped({1, 1, 1, 2}));
    std::vector<Array> arrays = bridge::arrays_of(inputs);
    EXPECT_LE(bridge::relative_error(out.value(), mamba2_twin(arrays, lengths).x), 100 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    grads.push_back(a_log.grad());
    bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<Array>& moved) {
      return mamba2_twin(moved, lengths);
    });
  }
}

TEST(Mamba2, AConstantStepIsRetention) {
  const auto mamba2 = build("mamba2", 2, 4, 90);
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
  const auto mamba2 = build("mamba2", 1, 4, 30);
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
  const auto mamba2 = build("mamba2", 1, 4, 12);
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
  const auto mamba2 = build("mamba2", 500, 2, 4);
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

// rwkv6 and rwkv7 against their equations in double, with the gradients of all inputs and weights,
// and what rwkv7 becomes when it removes nothing or all.

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The matrix that a step applies to the state of one head, [dim, dim], and the key that it writes.
struct Step {
  std::vector<double> transition, key;
};
using StepOf = std::function<Step(const std::vector<Array>& x, Index b, Index h, Index t)>;

// S_t = M_t·S_{t-1} + k̃_tᵀ·v_t; o_t = r_t·S_t, or with a bonus u [heads, dim] r_t·(S_{t-1} +
// diag(u)·k_tᵀ·v_t).
Array rwkv_twin(const std::vector<Array>& x, const StepOf& step_of, const Array* bonus,
                const std::vector<int64_t>& lengths) {
  const Array &r = x[0], &v = x[2];
  const Index d = r.dim;
  Array out(r.batch, r.heads, r.len, d);
  for (Index b = 0; b < r.batch; ++b)
    for (Index h = 0; h < r.heads; ++h) {
      Array state(1, 1, d, d);
      for (Index t = 0; t < r.len; ++t) {
        const bool valid = lengths.empty() || t < lengths[static_cast<size_t>(b)];
        const Array before = state;
        const Step step = valid ? step_of(x, b, h, t) : Step{};
        for (Index c = 0; valid && c < d; ++c)
          for (Index j = 0; j < d; ++j) {
            double sum = step.key[static_cast<size_t>(c)] * v.at(b, h, t, j);
            for (Index e = 0; e < d; ++e)
              sum += step.transition[static_cast<size_t>(c * d + e)] * before.at(0, 0, e, j);
            state.at(0, 0, c, j) = sum;
          }
        for (Index c = 0; c < d; ++c)
          for (Index j = 0; j < d; ++j) {
            double read = (bonus && valid ? before : state).at(0, 0, c, j);
            if (bonus && valid)
              read += bonus->at(0, 0, h, c) * step.key[static_cast<size_t>(c)] * v.at(b, h, t, j);
            out.at(b, h, t, j) += r.at(b, h, t, c) * read;
          }
      }
    }
  return out;
}

// x: r, k, v, ω and the bonus.
Array rwkv6_twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const auto step = [](const std::vector<Array>& a, Index b, Index h, Index t) {
    const Index d = a[0].dim;
    const oracle::Row key = a[1].row(b, h, t);
    Step result{std::vector<double>(static_cast<size_t>(d * d)), {key.begin(), key.end()}};
    for (Index c = 0; c < d; ++c)
      result.transition[static_cast<size_t>(c * d + c)] = std::exp(-std::exp(a[3].at(b, h, t, c)));
    return result;
  };
  return rwkv_twin(x, step, &x[4], lengths);
}

// x: r, k, v, decay, rate, k_k and k_a: diag(w) - (κ̂⊙a)ᵀ·κ̂ written out.
Array rwkv7_twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const auto step = [](const std::vector<Array>& a, Index b, Index h, Index t) {
    const Index d = a[0].dim;
    Step result{std::vector<double>(static_cast<size_t>(d * d)), {}};
    std::vector<double> removed;
    double square = 1e-6;
    for (Index c = 0; c < d; ++c) {
      const double k = a[1].at(b, h, t, c), rate = logistic(a[4].at(b, h, t, c));
      removed.push_back(k * a[5].at(0, 0, h, c));
      square += removed.back() * removed.back();
      result.key.push_back(k + k * (rate - 1) * a[6].at(0, 0, h, c));
    }
    for (Index c = 0; c < d; ++c)
      for (Index e = 0; e < d; ++e) {
        const double rate = logistic(a[4].at(b, h, t, c));
        const double decay = std::exp(-std::exp(-0.5) * logistic(a[3].at(b, h, t, c)));
        result.transition[static_cast<size_t>(c * d + e)] =
            (c == e ? decay : 0) -
            removed[static_cast<size_t>(c)] * rate * removed[static_cast<size_t>(e)] / square;
      }
    return result;
  };
  return rwkv_twin(x, step, nullptr, lengths);
}

template <class Twin>
void expect_equations(const char* name, size_t gates, const Twin& rwkv_twin) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {19, 8}}) {
    SCOPED_TRACE(name);
    const auto variant = build(name, 2, 5, 19);
    const stepwise::Drawn x({2, 2, 19, 5}, std::vector<int64_t>(gates, 5), lengths);
    const Var out = answer(*variant, x.vars, lengths);
    std::vector<Tensor> inputs = x.all;
    for (const Weight& weight : variant->weights())
      inputs.push_back(weight.value.value().reshaped({1, 1, 2, 5}));
    std::vector<Array> arrays = bridge::arrays_of(inputs);
    EXPECT_LE(bridge::relative_error(out.value(), rwkv_twin(arrays, lengths).x), 100 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    for (const Weight& weight : variant->weights())
      grads.push_back(weight.value.grad().reshaped({1, 1, 2, 5}));
    bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<Array>& moved) {
      return rwkv_twin(moved, lengths);
    });
  }
}

TEST(Rwkv6, EqualsItsEquations) { expect_equations("rwkv6", 1, rwkv6_twin); }
TEST(Rwkv7, EqualsItsEquations) { expect_equations("rwkv7", 2, rwkv7_twin); }

// Without decay and with u = 1: unnormalised linear attention that reads its own position too.
TEST(Rwkv6, ABonusOfOneWithoutDecayIsLinearAttention) {
  const auto rwkv6 = build("rwkv6", 1, 4, 90);
  rwkv6->weights()[0].value.set_value(Tensor::full({1, 4}, 1));
  const stepwise::Drawn x({1, 1, 90, 4}, {4}, {});
  x.all[3].fill(-200);  // e^-200 is no decay
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]);
  const Array want = oracle::weighted_sum(q, bridge::array_of(x.all[2]), {.causal = true},
                                          [&](Index b, Index h, Index i, Index j) {
                                            return oracle::dot(q.row(b, h, i), k.row(b, h, j));
                                          });
  EXPECT_LE(bridge::relative_error(answer(*rwkv6, x.vars).value(), want.x), 50 * kEpsilon);
}

// a = 0: a decay of each channel and the keys k·(1 - k_a), as gla's with that decay.
TEST(Rwkv7, WithoutRemovalIsADecayOfChannels) {
  const auto rwkv7 = build("rwkv7", 2, 4, 90);
  rwkv7->weights()[1].value.set_value(Tensor::full({2, 4}, real(0.25)));
  const stepwise::Drawn x({1, 2, 90, 4}, {4, 4}, {});
  x.all[4].fill(-200);
  const Array decay = bridge::array_of(x.all[3]);
  const Array want = stepwise::outputs(
      bridge::array_of(x.all[0]), bridge::array_of(x.all[1]), bridge::array_of(x.all[2]), 0.75,
      [&](Index b, Index h, Index t, Index c) {
        return std::exp(-std::exp(-0.5) * logistic(decay.at(b, h, t, c)));
      },
      stepwise::one, {});
  EXPECT_LE(bridge::relative_error(answer(*rwkv7, x.vars).value(), want.x), 100 * kEpsilon);
}

// w = 1, a = 1, k_a = 0 and keys of length 1: the delta rule with β = 1.
TEST(Rwkv7, FullRemovalWithoutDecayIsDeltanet) {
  const auto rwkv7 = build("rwkv7", 2, 4, 90), deltanet = build("deltanet", 2, 4, 90);
  rwkv7->weights()[1].value.set_value(Tensor::zeros({2, 4}));
  rwkv7->weights()[0].value.set_value(Tensor::full({2, 4}, 1));
  const stepwise::Drawn x({1, 2, 90, 4}, {4, 4}, {});
  for (int64_t i = 0; i < 2 * 90; ++i)
    for (const size_t which : {size_t{0}, size_t{1}}) {
      real* const row = x.all[which].data() + 4 * i;
      real square = 0;
      for (int64_t c = 0; c < 4; ++c) square += row[c] * row[c];
      for (int64_t c = 0; c < 4; ++c) row[c] /= std::sqrt(square);
    }
  x.all[3].fill(-200), x.all[4].fill(200);
  const Tensor delta =
      answer(*deltanet, {x.vars[0], x.vars[1], x.vars[2], Var(Tensor::full({1, 2, 90, 1}, 200))})
          .value();
  Array want = bridge::array_of(delta);  // scaled by 1/√4; unit rows lose half of 1e-6 of it
  for (double& number : want.x) number *= 2;
  EXPECT_LE(bridge::relative_error(answer(*rwkv7, x.vars).value(), want.x), 3e-6);
}

}  // namespace
}  // namespace attn::mamba2_test
