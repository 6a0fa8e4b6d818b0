// State spaces where they are each other or something simpler: mamba with one decay a head is
// mamba2, with constant gates a convolution, and the scan of s4d; lru with real poles is a bank of
// exponential moving averages; h3 without states is a product; and that the channels of a vector
// stay apart. On every instruction set. What each variant is by itself, the contract compares with
// its reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/simd/isa.h"
#include "tests/variants/small_sequence.h"
#include "variants/api/mixer.h"
#include "variants/catalog.h"
#include "variants/scans/scans.h"

namespace attn::scans_test {
namespace {

using small_sequence::build;
using small_sequence::expect_same;
using small_sequence::kDim;
using small_sequence::kHeads;
using small_sequence::kLen;
using small_sequence::rows_shape;

// q, k, v of mamba2 are C, B and x.
TEST(Mamba, WithOneDecayAHeadIsMamba2) {
  const auto mamba2 = build("mamba2"), mamba = build("mamba", {{"states", kDim}});
  const Tensor rates = mamba2->weights()[0].value.value(),
               a_log = mamba->weights()[0].value.value();
  for (int64_t i = 0; i < a_log.size(); ++i) a_log[i] = rates[i / (kDim * kDim)];
  const Tensor c = bridge::normal(rows_shape(), "c"), b = bridge::normal(rows_shape(), "b"),
               x = bridge::normal(rows_shape(), "x"),
               step = bridge::normal(rows_shape().with(3, 1), "step");
  for (real& value : step.values()) value -= real(2);  // steps near those of the start
  const Tensor steps{rows_shape()};
  for (int64_t i = 0; i < steps.size(); ++i) steps[i] = step[i / kDim];
  const Tensor want =
      mamba2->forward(Var(c), Var(b), Var(x), {true, {}}, std::array{Var(step)}).value();
  const Tensor got =
      mamba->forward(Var(x), Var(x), Var(x), {true, {}}, std::array{Var(steps), Var(b), Var(c)})
          .value();
  expect_same(got, want);
}

struct Constant {
  Tensor x = bridge::normal(rows_shape(), "x"), delta = Tensor(rows_shape());
  Tensor write{{1, kHeads, kLen, kStates}}, read{{1, kHeads, kLen, kStates}};
  Tensor a_log = bridge::normal({kHeads, kStates, kDim}, "a_log", 0.5);
  static constexpr int64_t kStates = 3;

  Constant() {
    delta.fill(static_cast<real>(0.2));
    for (int64_t i = 0; i < write.size(); ++i) {
      const int64_t n = i % kStates + i / (kLen * kStates) * kStates;
      write[i] = static_cast<real>(std::cos(n)), read[i] = static_cast<real>(std::sin(1 + 2 * n));
    }
  }
  double at(const Tensor& gate, int64_t head, int64_t n) const {
    return static_cast<double>(gate[head * kLen * kStates + n]);
  }
  double factor(int64_t head, int64_t n, int64_t c) const {
    return std::exp(-0.2 * std::exp(static_cast<double>(a_log[(head * kStates + n) * kDim + c])));
  }
  Tensor scanned() const {
    return selective_scan({Var(x), Var(delta), Var(write), Var(read), Var(a_log)}).value();
  }
};

TEST(SelectiveScan, OfConstantGatesIsAConvolution) {
  const Constant k;
  const Tensor want{rows_shape()};
  for (int64_t i = 0; i < want.size(); ++i) {
    const int64_t c = i % kDim, t = i / kDim % kLen, head = i / kDim / kLen;
    double sum = 0;
    for (int64_t n = 0; n < Constant::kStates; ++n)
      for (int64_t s = 0; s <= t; ++s)
        sum += k.at(k.read, head, n) * k.at(k.write, head, n) * 0.2 *
               std::pow(k.factor(head, n, c), static_cast<double>(t - s)) *
               static_cast<double>(k.x[i - (t - s) * kDim]);
    want[i] = static_cast<real>(sum);
  }
  for (const std::string& isa : isas()) {
    hold_isa(isa);
    expect_same(k.scanned(), want);
  }
  hold_isa("best");
}

TEST(SelectiveScan, OfConstantGatesIsTheConstantScan) {
  const Constant k;
  const Tensor taps = Tensor::zeros({4, kHeads, Constant::kStates, kDim});
  const int64_t size = taps.size() / 4;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t c = i % kDim, n = i / kDim % Constant::kStates,
                  head = i / kDim / Constant::kStates;
    taps[i] = static_cast<real>(k.factor(head, n, c));
    taps[2 * size + i] = static_cast<real>(0.2 * k.at(k.write, head, n) * k.at(k.read, head, n));
  }
  for (const std::string& isa : isas()) {
    hold_isa(isa);
    expect_same(constant_scan(Var(k.x), Var(taps)).value(), k.scanned());
  }
  hold_isa("best");
}

// Channel c of the last axis, alone.
Tensor channel(const Tensor& t, int64_t c) {
  const int64_t width = t.dim(-1);
  const Tensor one(t.shape().with(t.shape().rank() - 1, 1));
  for (int64_t i = 0; i < one.size(); ++i) one[i] = t[i * width + c];
  return one;
}

using ScanOf = std::function<Var(const std::vector<Var>& inputs)>;

// The output, and the gradients of all inputs.
std::vector<Tensor> results(const std::vector<Tensor>& inputs, const Tensor& seed,
                            const ScanOf& scan) {
  std::vector<Var> vars;
  for (const Tensor& input : inputs) vars.emplace_back(input, true);
  const Var out = scan(vars);
  out.backward(seed);
  std::vector<Tensor> all = {out.value()};
  for (const Var& var : vars) all.push_back(var.grad());
  return all;
}

// Each channel as if it were alone, though a vector holds some of them; what all channels share,
// the inputs from `own` on, gets the sum of their gradients.
void expect_channels_apart(const std::vector<Tensor>& inputs, size_t own, const ScanOf& scan) {
  const Tensor seed = bridge::normal(inputs[0].shape(), "seed");
  for (const std::string& isa : isas()) {
    hold_isa(isa);
    const std::vector<Tensor> got = results(inputs, seed, scan);
    std::vector<Tensor> want;
    for (const Tensor& t : got) want.push_back(Tensor::zeros(t.shape()));
    const int64_t width = inputs[0].dim(-1);
    for (int64_t c = 0; c < width; ++c) {
      std::vector<Tensor> alone = inputs;
      for (size_t i = 0; i < own; ++i) alone[i] = channel(inputs[i], c);
      const std::vector<Tensor> one = results(alone, channel(seed, c), scan);
      for (size_t i = 0; i < one.size(); ++i)
        for (int64_t at = 0; at < one[i].size(); ++at)
          want[i][i <= own ? at * width + c : at] += one[i][at];
    }
    for (size_t i = 0; i < got.size(); ++i) expect_same(got[i], want[i]);
  }
  hold_isa("best");
}

// More channels than the largest vector holds, and no whole number of vectors.
TEST(Scans, ChannelsAreApartBeyondOneVector) {
  constexpr int64_t kWide = 37, kStates = 3;
  const Shape rows{1, kHeads, kLen, kWide}, gate{1, kHeads, kLen, kStates};
  const Tensor x = bridge::normal(rows, "x"), delta = bridge::normal(rows, "delta", 0.3);
  for (real& step : delta.values()) step = std::abs(step);
  expect_channels_apart({x, delta, bridge::normal({kHeads, kStates, kWide}, "a_log", 0.5),
                         bridge::normal(gate, "write"), bridge::normal(gate, "read")},
                        3, [](const std::vector<Var>& v) {
                          return selective_scan({v[0], v[1], v[3], v[4], v[2]});
                        });
  expect_channels_apart({x, bridge::normal({4, kHeads, kStates, kWide}, "taps", 0.4)}, 2,
                        [](const std::vector<Var>& v) { return constant_scan(v[0], v[1]); });
}

// Mega's moving average (Ma et al. 2022, arXiv:2209.10655, eq. 1) of one dimension a channel:
// h = (1 - a)·h + a·x.
TEST(Lru, OfRealPolesIsABankOfMovingAverages) {
  constexpr int64_t kWidth = kHeads * kDim;
  const auto lru = build("lru");
  const std::vector<Weight> weights = lru->weights();
  const Tensor poles = weights[0].value.value(), b = weights[1].value.value(),
               c = weights[2].value.value();
  b.fill(0), c.fill(0);
  std::vector<double> share(kWidth);  // a
  for (int64_t j = 0; j < kWidth; ++j) {
    share[static_cast<size_t>(j)] = 0.05 + 0.09 * static_cast<double>(j);
    poles[j] = static_cast<real>(std::log(-std::log(1 - share[static_cast<size_t>(j)])));
    poles[kWidth + j] = -40;  // an angle of e^-40
    poles[2 * kWidth + j] = static_cast<real>(std::log(share[static_cast<size_t>(j)]));
    b[j * 2 * kWidth + j] = c[j * kWidth + j] = 1;
  }
  const Tensor x = bridge::normal({1, kLen, kWidth}, "x"), want(x.shape());
  for (int64_t j = 0; j < kWidth; ++j) {
    double h = 0;
    for (int64_t t = 0; t < kLen; ++t) {
      const double a = share[static_cast<size_t>(j)];
      h = (1 - a) * h + a * static_cast<double>(x[t * kWidth + j]);
      want[t * kWidth + j] = static_cast<real>(h);
    }
  }
  // p = a, and σ(40) is 1.
  const Tensor steps({1, kWidth}), one = Tensor::full({1, kWidth}, 1);
  for (int64_t j = 0; j < kWidth; ++j)
    steps[j] = static_cast<real>(-std::log(1 / share[static_cast<size_t>(j)] - 1));
  const AverageWeights bank{Var(steps), Var(Tensor::full({1, kWidth}, 40)), Var(one), Var(one)};
  for (const std::string& isa : isas()) {
    hold_isa(isa);
    expect_same(as_mixer(*lru)->mix(Var(x), {.causal = true}).value(), want);
    expect_same(moving_average(Var(x), {bank}, {}).value(), want);
  }
  hold_isa("best");
}

// With one tap at distance 1, no output of the states and D = 1: q_t ⊙ k_{t-1} ⊙ v_t.
TEST(H3, WithoutStatesIsAProductWithTheKeyBefore) {
  const auto h3 = build("h3", {{"shift", 3}});
  for (const Weight& weight : h3->weights()) {
    const Tensor value = weight.value.value();
    const bool is_tap = weight.name == "shift_C";
    for (int64_t i = 0; i < value.size(); ++i)
      if (is_tap)
        value[i] = i / kDim % 3 == 1 ? real(1) : real(0);
      else if (weight.name == "shift_D" || weight.name == "C_real" || weight.name == "C_imag")
        value[i] = 0;
      else if (weight.name == "D")
        value[i] = 1;
  }
  const Tensor q = bridge::normal(rows_shape(), "q"), k = bridge::normal(rows_shape(), "k"),
               v = bridge::normal(rows_shape(), "v"), want(rows_shape());
  for (int64_t i = 0; i < want.size(); ++i)
    want[i] = i / kDim % kLen == 0 ? real(0) : q[i] * k[i - kDim] * v[i];
  expect_same(h3->forward(Var(q), Var(k), Var(v), {true, {}}).value(), want);
}

}  // namespace
}  // namespace attn::scans_test
