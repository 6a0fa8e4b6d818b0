// The recurrent form of the engine against the chunked one, and equalities between mechanisms: what
// each becomes when a gate is constant, one or zero.
#include "variants/chunked/state_decoder.h"

#include <gtest/gtest.h>

#include "tests/variants/chunked/chunked_cases.h"

namespace attn::state_decoder_test {
namespace {

using bridge::ChunkedCase;
using bridge::ChunkedResult;
using bridge::ChunkedTensors;
using bridge::Rule;

constexpr double kAllowed = 60 * kEpsilon;

void expect_same(const ChunkedResult& got, const ChunkedResult& want, size_t grads = 3) {
  const auto close = [](const Tensor& a, const Tensor& b) {
    const double error = bridge::relative_error(a, bridge::array_of(b).x);
    EXPECT_LE(error, kAllowed);
  };
  close(got.out, want.out);
  for (size_t i = 0; i < grads; ++i) close(got.grads[i], want.grads[i]);
}

TEST(StateDecoder, StepsAreTheChunkedForm) {
  constexpr int64_t n = 90, m = 6, d = 5;
  for (const ChunkedCase& c : bridge::every_rule({.len = n, .key_dim = m, .dim = d})) {
    SCOPED_TRACE(bridge::text_of(c));
    const ChunkedTensors x = bridge::tensors_of(c);
    const Tensor want = bridge::run_chunked(x, {}).out, got(want.shape());
    const Tensor state = Tensor::zeros({m, d}), decay({m}), work({step_reals(m, d)});
    Tally done;
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t i = 0; i < m; ++i) {
        if (c.decay == Decay::head) decay[i] = std::exp(x.log_decay[0]);
        if (c.decay == Decay::step) decay[i] = std::exp(x.log_decay[t]);
        if (c.decay == Decay::channel) decay[i] = std::exp(x.log_decay[t * m + i]);
      }
      advance_state({.key_dim = m,
                     .dim = d,
                     .q = x.q.data() + t * m,
                     .k = x.k.data() + t * m,
                     .v = x.v.data() + t * d,
                     .decay = c.decay == Decay::none ? nullptr : decay.data(),
                     .beta = x.beta.defined() ? x.beta.data() + t : nullptr,
                     .bonus = x.bonus.data(),
                     .erase = x.erase.defined() ? x.erase.data() + t * m : nullptr,
                     .remove = x.remove.defined() ? x.remove.data() + t * m : nullptr,
                     .out = got.data() + t * d},
                    state.data(), work.data(), done);
    }
    const double error = bridge::relative_error(got, bridge::array_of(want).x);
    EXPECT_LE(error, kAllowed);
  }
}

// Σ_{j <= i} γ^(i-j)·(q_i·k_j)·v_j: retention (arXiv:2307.08621, eq. 5); γ = 1: linear attention
// without normalisation.
TEST(StateDecoder, AConstantDecayIsRetentionAndNoneLinearAttention) {
  for (const Decay decay : {Decay::none, Decay::head}) {
    const ChunkedCase c{.decay = decay, .heads = 2, .len = 140, .key_dim = 5, .dim = 4};
    const ChunkedTensors x = bridge::tensors_of(c);
    const oracle::Array q = bridge::array_of(x.q), k = bridge::array_of(x.k);
    const oracle::Array want = oracle::weighted_sum(
        q, bridge::array_of(x.v), {true},
        [&](oracle::Index b, oracle::Index h, oracle::Index i, oracle::Index j) {
          const double log = decay == Decay::head ? static_cast<double>(x.log_decay[h]) : 0;
          return std::exp(static_cast<double>(i - j) * log) *
                 oracle::dot(q.row(b, h, i), k.row(b, h, j));
        });
    const double error = bridge::relative_error(bridge::run_chunked(x, {}).out, want.x);
    EXPECT_LE(error, kAllowed);
  }
}

// Retention is the decay of each step where all steps have the same, and that of channels where all
// channels have the same: Kimi Delta Attention is Gated DeltaNet, gated linear attention is
// Mamba-2.
TEST(StateDecoder, DecaysOfChannelsOfStepsAndOfHeadsAgree) {
  for (const Rule rule : {Rule::plain, Rule::bonus, Rule::delta}) {
    const ChunkedCase c{.decay = Decay::step, .rule = rule, .len = 100, .key_dim = 6, .dim = 4};
    ChunkedTensors x = bridge::tensors_of(c);
    const Tensor channels({1, 1, c.len, c.key_dim});
    for (int64_t i = 0; i < channels.size(); ++i) channels[i] = x.log_decay[i / c.key_dim];
    const ChunkedResult of_steps = bridge::run_chunked(x, {});
    x.log_decay = channels;
    const ChunkedResult of_channels = bridge::run_chunked(x, {});
    expect_same(of_channels, of_steps);
    for (int64_t i = 0; i < c.len; ++i) {  // and the gradient of a step is the sum of its channels'
      real sum = 0;
      for (int64_t j = 0; j < c.key_dim; ++j) sum += of_channels.grads[3][i * c.key_dim + j];
      EXPECT_TRUE(std::abs(sum - of_steps.grads[3][i]) <= 1000 * kEpsilon) << i;
    }
    x.log_decay = Tensor::full({1, 1, c.len, 1}, real(-0.3));
    const ChunkedResult constant = bridge::run_chunked(x, {});
    x.log_decay = Tensor::full({1}, real(-0.3));
    expect_same(bridge::run_chunked(x, {}), constant);
  }
}

TEST(StateDecoder, NoDecayAndALogDecayOfZeroAgree) {
  for (const Rule rule : {Rule::plain, Rule::bonus, Rule::delta}) {
    const ChunkedCase c{.rule = rule, .len = 100, .key_dim = 6, .dim = 4};
    ChunkedTensors x = bridge::tensors_of(c);
    const ChunkedResult none = bridge::run_chunked(x, {});
    x.log_decay = Tensor::zeros({1, 1, c.len, 1});
    expect_same(bridge::run_chunked(x, {}), none);
    x.log_decay = Tensor::zeros({1, 1, c.len, c.key_dim});
    expect_same(bridge::run_chunked(x, {}), none);
  }
}

TEST(StateDecoder, TheDeltaRuleWithOrthonormalKeysIsLinearAttention) {
  constexpr int64_t n = 32;  // keys are the rows of a rotation in planes
  ChunkedTensors x = bridge::tensors_of({.rule = Rule::delta, .len = n, .key_dim = n, .dim = 4});
  x.k.fill(0);
  for (int64_t i = 0; i < n; ++i) {
    const real c = real(0.6), s = real(i % 2 == 0 ? 0.8 : -0.8);
    x.k[i * n + i] = c, x.k[i * n + (i ^ 1)] = s;
  }
  x.beta.fill(1);
  const Tensor delta = bridge::run_chunked(x, {{}, 7}).out;
  x.beta = {};
  const Tensor linear = bridge::run_chunked(x, {}).out;
  const double error = bridge::relative_error(delta, bridge::array_of(linear).x);
  EXPECT_LE(error, kAllowed);
}

// The same unit key again and again, β = 1: a query of that key reads the last value alone, where
// linear attention reads their sum.
TEST(StateDecoder, TheDeltaRuleOverwritesTheValueOfAKey) {
  constexpr int64_t n = 70, m = 4, d = 3;
  ChunkedTensors x = bridge::tensors_of({.rule = Rule::delta, .len = n, .key_dim = m, .dim = d});
  for (int64_t i = 0; i < n * m; ++i) x.k[i] = x.q[i] = real(0.5);
  x.beta.fill(1);
  const Tensor out = bridge::run_chunked(x, {}).out;
  for (int64_t i = 0; i < n * d; ++i) EXPECT_NEAR(out[i], x.v[i], 50 * kEpsilon) << i;
}

TEST(StateDecoder, ABonusOfOneWithoutDecayIsLinearAttention) {
  const ChunkedCase c{.rule = Rule::bonus, .heads = 2, .len = 100, .key_dim = 6, .dim = 4};
  ChunkedTensors x = bridge::tensors_of(c);
  x.bonus.fill(1);
  const ChunkedResult with = bridge::run_chunked(x, {});
  x.bonus = {};
  expect_same(with, bridge::run_chunked(x, {}));
}

// A bonus of 0 reads the state one step late; where a step forgets everything, the previous
// position alone.
TEST(StateDecoder, ABonusOfZeroReadsTheStateBefore) {
  const ChunkedCase c{
      .decay = Decay::channel, .rule = Rule::bonus, .len = 100, .key_dim = 6, .dim = 4};
  ChunkedTensors x = bridge::tensors_of(c);
  x.bonus.fill(0);
  const Tensor late = bridge::run_chunked(x, {}).out;
  ChunkedTensors forgets = x;
  forgets.log_decay = Tensor::full(x.log_decay.shape(), -100);
  const Tensor one = bridge::run_chunked(forgets, {}).out;
  ChunkedTensors early = x;
  early.bonus = {}, early.q = Tensor::zeros(x.q.shape());  // each query one position earlier
  std::copy_n(x.q.data() + c.key_dim, (c.len - 1) * c.key_dim, early.q.data());
  const Tensor now = bridge::run_chunked(early, {}).out;
  for (int64_t i = 0; i < c.len; ++i)
    for (int64_t e = 0; e < c.dim; ++e) {
      const real before = i > 0 ? now[(i - 1) * c.dim + e] : real(0);
      EXPECT_NEAR(late[i * c.dim + e], before, 200 * kEpsilon) << i;
      double product = 0;
      for (int64_t m = 0; m < c.key_dim && i > 0; ++m)
        product += static_cast<double>(x.q[i * c.key_dim + m]) *
                   static_cast<double>(x.k[(i - 1) * c.key_dim + m]);
      const double value = i > 0 ? static_cast<double>(x.v[(i - 1) * c.dim + e]) : 0;
      EXPECT_NEAR(static_cast<double>(one[i * c.dim + e]), product * value, 50 * kEpsilon) << i;
    }
}

// Kimi Delta Attention is a removal that reads k⊙a before the decay, takes it from β·k and writes
// at β·k: the one oracle of delta rules.
TEST(StateDecoder, ARemovalOfTheKeyIsTheDeltaRule) {
  for (const Decay decay : {Decay::none, Decay::channel}) {
    const ChunkedCase c{
        .decay = decay, .rule = Rule::delta, .heads = 2, .len = 100, .key_dim = 6, .dim = 4};
    const ChunkedTensors x = bridge::tensors_of(c);
    ChunkedTensors y = x;
    y.beta = {};
    y.k = Tensor(x.k.shape()), y.erase = Tensor(x.k.shape()), y.remove = Tensor(x.k.shape());
    for (int64_t i = 0; i < x.k.size(); ++i) {
      y.erase[i] = x.k[i] * (decay == Decay::none ? real(1) : std::exp(x.log_decay[i]));
      y.k[i] = y.remove[i] = x.beta[i / c.key_dim] * x.k[i];
    }
    const double error = bridge::relative_error(bridge::run_chunked(y, {}).out,
                                                bridge::array_of(bridge::run_chunked(x, {}).out).x);
    EXPECT_LE(error, kAllowed);
  }
}

TEST(StateDecoder, RemovingNothingIsTheDecayAlone) {
  const ChunkedCase c{
      .decay = Decay::channel, .rule = Rule::removal, .len = 100, .key_dim = 6, .dim = 4};
  ChunkedTensors x = bridge::tensors_of(c);
  x.remove.fill(0);
  const ChunkedResult none = bridge::run_chunked(x, {});
  x.erase = x.remove = {};
  expect_same(bridge::run_chunked(x, {}), none, 4);
}

}  // namespace
}  // namespace attn::state_decoder_test
