// Decayed linear attention against the recurrence in double, with all gradients; against retention
// and unnormalised linear attention, which are its special cases; decays of 0; positions before the
// first.
#include "variants/gated/gated.h"

#include <array>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/gated/stepwise.h"

namespace attn::decayed_attention_test {
namespace {

using stepwise::Array;
using stepwise::Index;

constexpr double kTau = 0.3;

// Of q, k, v and log-decays of one number or one a channel.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const auto decay = [&](Index b, Index h, Index t, Index c) {
    return std::exp(x[3].at(b, h, t, x[3].dim == 1 ? 0 : c));
  };
  return stepwise::outputs(x[0], x[1], x[2], kTau, decay, stepwise::one, lengths);
}

// Log-decays of numbers drawn from N(0, 1).
void make_decays(const Tensor& x, double rate) {
  for (real& value : x.values()) value = static_cast<real>(-rate * std::abs(value));
}

TEST(DecayedAttention, EqualsTheRecurrence) {
  const std::vector<std::vector<int64_t>> of_two = {{}, {0, 13}, {7, 1}};
  for (const std::vector<int64_t>& lengths : of_two)
    for (const bool channels : {false, true})
      for (const double rate : {0.1, 30.0}) {
        SCOPED_TRACE(testing::Message() << channels << " " << rate << " " << lengths.size());
        const stepwise::Drawn x({2, 3, 13, 5}, {channels ? 5 : 1}, lengths);
        make_decays(x.all[3], rate);
        const Var out =
            decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], kTau, lengths);
        std::vector<Array> arrays;
        for (const Tensor& t : x.all) arrays.push_back(bridge::array_of(t));
        EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, lengths).x), 50 * kEpsilon);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
          return twin(moved, lengths);
        });
      }
}

// What the sum for the gradient of a decay loses by cancellation at a length of 700.
TEST(DecayedAttention, GradientsHoldOverLongSequences) {
  const stepwise::Drawn x({1, 1, 700, 4}, {4}, {});
  make_decays(x.all[3], 0.02);
  const Var out = decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], kTau, {});
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  bridge::expect_gradients(x.all, x.grads(), seed,
                           [&](const std::vector<Array>& moved) { return twin(moved, {}); });
}

// A decay of 0 leaves the position alone, forward and backward.
TEST(DecayedAttention, ForgetsAllAtADecayOfZero) {
  const stepwise::Drawn x({1, 2, 9, 4}, {1}, {});
  x.all[3].fill(-1e4);
  const Var out = decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], 1, {});
  for (int64_t row = 0; row < 18; ++row) {
    double weight = 0;
    for (int64_t c = 0; c < 4; ++c)
      weight +=
          static_cast<double>(x.all[0][row * 4 + c]) * static_cast<double>(x.all[1][row * 4 + c]);
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_NEAR(out.value()[row * 4 + j], weight * static_cast<double>(x.all[2][row * 4 + j]),
                  1e-5);
  }
  out.backward(bridge::normal(out.shape(), "seed"));
  for (const Tensor& grad : x.grads())
    for (const real value : grad.values()) EXPECT_TRUE(std::isfinite(value));
}

// Sun et al. 2023, arXiv:2307.08621, eq. 5: (Q·Kᵀ ⊙ D)·V with D_ij = γ^(i-j), a γ for each head.
TEST(DecayedAttention, AConstantDecayIsRetention) {
  constexpr int64_t kLen = 40;
  const stepwise::Drawn x({2, 2, kLen, 3}, {1}, {});
  const std::array<double, 2> gamma = {1 - 1.0 / 32, 1 - 1.0 / 64};
  for (int64_t i = 0; i < x.all[3].size(); ++i)
    x.all[3][i] = static_cast<real>(std::log(gamma[static_cast<size_t>(i / kLen % 2)]));
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]),
              v = bridge::array_of(x.all[2]);
  const Array want =
      oracle::weighted_sum(q, v, {.causal = true}, [&](Index b, Index h, Index i, Index j) {
        return oracle::dot(q.row(b, h, i), k.row(b, h, j)) *
               std::pow(gamma[static_cast<size_t>(h)], static_cast<double>(i - j));
      });
  const Var out = decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], 1, {});
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 50 * kEpsilon);
}

TEST(DecayedAttention, WithoutDecayIsUnnormalisedLinearAttention) {
  const stepwise::Drawn x({1, 2, 50, 3}, {3}, {});
  x.all[3].fill(0);
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]);
  const Array want = oracle::weighted_sum(q, bridge::array_of(x.all[2]), {.causal = true},
                                          [&](Index b, Index h, Index i, Index j) {
                                            return oracle::dot(q.row(b, h, i), k.row(b, h, j));
                                          });
  const Var out = decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], 1, {});
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 50 * kEpsilon);
}

// Positions that write nothing, before the first that writes: the state is 0, whatever it decays
// by.
TEST(DecayedAttention, EmptyPositionsAtTheStartLeaveTheRestAsItIs) {
  constexpr int64_t kBefore = 6, kLen = 15;
  const stepwise::Drawn x({1, 2, kBefore + kLen, 4}, {4}, {});
  make_decays(x.all[3], 1);
  for (const size_t i : {1, 2})
    for (int64_t at = 0; at < x.all[i].size(); ++at)
      if (at / 4 % (kBefore + kLen) < kBefore) x.all[i][at] = 0;
  std::vector<Var> rest;
  for (const Var& var : x.vars) rest.push_back(slice(var, 2, kBefore, kBefore + kLen));
  const Var all = decayed_attention(x.vars[0], x.vars[1], x.vars[2], x.vars[3], 1, {});
  const Var alone = decayed_attention(rest[0], rest[1], rest[2], rest[3], 1, {});
  const Tensor found = slice(all, 2, kBefore, kBefore + kLen).value();
  EXPECT_TRUE(bridge::same_bits(found, alone.value()));
}

TEST(DecayedAttention, RefusesShapesThatDoNotFit) {
  const Var x(Tensor::zeros({1, 2, 4, 3}));
  const auto with = [&](const Shape& k, const Shape& decay) {
    return decayed_attention(x, Var(Tensor::zeros(k)), x, Var(Tensor::zeros(decay)), 1, {});
  };
  EXPECT_NO_THROW(with({1, 2, 4, 3}, {1, 2, 4, 3}));
  EXPECT_NO_THROW(with({1, 2, 4, 3}, {1, 2, 4, 1}));
  EXPECT_THROW(with({1, 2, 5, 3}, {1, 2, 4, 3}), Error);
  EXPECT_THROW(with({1, 2, 4, 3}, {1, 2, 4, 2}), Error);
  EXPECT_THROW(with({1, 2, 4, 3}, {1, 1, 4, 3}), Error);
}

}  // namespace
}  // namespace attn::decayed_attention_test
