// aft against its equations in double, with biases that products take and those that they do not;
// what its kinds equal; a key that is huge; and decoding of each kind.
#include "core/base/counters.h"
#include "core/base/memory.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"
#include "variants/reference/aft.h"

namespace attn::aft_test {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr int64_t kLen = 100, kHeads = 2, kDim = 5;  // three tiles and a part, no whole vector

std::unique_ptr<Attention> build(const Given& given, bool causal, double deviation,
                                 int64_t len = kLen) {
  auto aft = find_variant("aft").build({kHeads, kDim, len + 3, causal, 3, {}}, given);
  for (const Weight& weight : aft->weights())
    weight.value.set_value(bridge::normal(weight.value.shape(), weight.name.c_str(), deviation));
  return aft;
}

const ParamValue kSimple = std::string("simple"), kLocal = std::string("local"),
                 kConv = std::string("conv");
std::vector<Given> kinds() {
  return {{},
          {{"kind", kLocal}, {"window", int64_t{20}}},
          {{"kind", kConv}, {"window", int64_t{20}}},
          {{"kind", kSimple}}};
}

oracle::PairBias bias_of(const Given& given, const std::vector<oracle::Array>& weights,
                         int64_t window, bool causal) {
  if (given.contains("kind") && given.at("kind") == kConv)
    return oracle::bias_of_distance(weights[0], causal);
  return oracle::bias_of_factors(weights, window);
}

struct Inputs {
  Tensor q, k, v;
  explicit Inputs(int64_t batch = 1, int64_t len = kLen)
      : q(bridge::normal({batch, kHeads, len, kDim}, "q")),
        k(bridge::normal(q.shape(), "k")),
        v(bridge::normal(q.shape(), "v")) {}
  Tensor through(const Attention& aft, const Mask& mask = {}) const {
    return aft.forward(Var(q), Var(k), Var(v), mask).value();
  }
};

double distance(const Tensor& a, const Tensor& b) {
  return bridge::relative_error(a, bridge::array_of(b).x);
}

void expect_twin(const Given& given, int64_t window, bool causal, double deviation) {
  SCOPED_TRACE(fmt::format("window {}, causal {}, biases of {}", window, causal, deviation));
  const auto aft = build(given, causal, deviation);
  const std::vector<int64_t> lengths = {kLen, 0, 37};
  const Inputs x(3);
  bridge::fill_padding(x.k, lengths, bridge::kNaN);
  bridge::fill_padding(x.v, lengths, bridge::kNaN);
  std::vector<Tensor> inputs = {x.q, x.k, x.v}, grads;
  std::vector<Var> vars = {Var(x.q, true), Var(x.k, true), Var(x.v, true)};
  for (const Weight& weight : aft->weights())
    inputs.push_back(weight.value.value()), vars.push_back(weight.value);
  const auto twin = [&](const std::vector<oracle::Array>& a) {
    const std::vector<oracle::Array> weights(a.begin() + 3, a.end());
    return oracle::attention_free(a[0], a[1], a[2], bias_of(given, weights, window, causal),
                                  {causal, {lengths.begin(), lengths.end()}});
  };
  const Var out = aft->forward(vars[0], vars[1], vars[2], {causal, lengths});
  std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
  EXPECT_LE(bridge::relative_error(out.value(), twin(arrays).x), 200 * kEpsilon);
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  for (const Var& var : vars) grads.push_back(var.grad());
  bridge::expect_gradients(inputs, grads, seed, twin);
}

// Deviations of 0.7 give |left|·|right| of at most 30 for rank 3, of 3 more; and so do biases of
// distances of deviation 7 and 30.
TEST(Aft, EqualsItsEquations) {
  const ParamValue rank = int64_t{3};
  for (const bool causal : {false, true}) {
    expect_twin({{"kind", kSimple}}, 0, causal, 0);
    for (const double deviation : {0.7, 3.0}) {
      expect_twin({{"rank", rank}}, kLen, causal, deviation);
      for (const int64_t window : {1, 20, 33, 70, 200})
        expect_twin({{"kind", kConv}, {"window", window}}, window, causal, 10 * deviation);
      for (const int64_t window : {1, 20, 33, 70})
        expect_twin({{"kind", kLocal}, {"rank", rank}, {"window", window}}, window, causal,
                    deviation);
    }
  }
}

TEST(Aft, WithoutBiasesEachKindIsSimple) {
  const Inputs x;
  for (const bool causal : {false, true}) {
    const Tensor simple = x.through(*build({{"kind", kSimple}}, causal, 0), {causal, {}});
    for (const char* kind : {"full", "local", "conv"})
      EXPECT_LE(distance(x.through(*build({{"kind", std::string(kind)}}, causal, 0), {causal, {}}),
                         simple),
                20 * kEpsilon);
  }
}

TEST(Aft, OfEqualKeysWithoutBiasesIsAGatedMean) {
  Inputs x;
  x.k.fill(0);
  const Tensor got = x.through(*build({}, false, 0)), want(got.shape());
  for (int64_t i = 0; i < want.size(); ++i) {
    const int64_t head = i / kLen / kDim;
    double sum = 0;
    for (int64_t j = 0; j < kLen; ++j)
      sum += static_cast<double>(x.v[(head * kLen + j) * kDim + i % kDim]);
    want[i] = static_cast<real>(sum / kLen / (1 + std::exp(-static_cast<double>(x.q[i]))));
  }
  EXPECT_LE(distance(got, want), 20 * kEpsilon);
}

TEST(Aft, AWindowOfTheLengthIsFull) {
  const Inputs x;
  for (const bool causal : {false, true})
    EXPECT_LE(
        distance(x.through(*build({{"kind", kLocal}, {"window", kLen}}, causal, 0.3), {causal, {}}),
                 x.through(*build({}, causal, 0.3), {causal, {}})),
        20 * kEpsilon);
}

// A number added to all keys of a channel cancels; 8 and 64 round few keys by much.
TEST(Aft, KeysMayMoveTogether) {
  for (const Given& given : kinds()) {
    const auto aft = build(given, true, 0.3);
    Inputs x;
    const Tensor once = x.through(*aft, {true, {}});
    for (int64_t i = 0; i < x.k.size(); ++i) x.k[i] += i % kDim == 0 ? real(8) : real(64);
    EXPECT_LE(distance(x.through(*aft, {true, {}}), once), 200 * kEpsilon);
  }
}

// One maximum of all keys would turn the weights before position 90 into zeros.
TEST(Aft, RegressionAHugeLaterKeyHidesNoEarlierOne) {
  for (const Given& given : kinds()) {
    const auto aft = build(given, true, 0.3);
    Inputs x;
    const Tensor before = x.through(*aft, {true, {}});
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t c = 0; c < kDim; ++c) x.k[(head * kLen + 90) * kDim + c] = 1000;
    const Tensor after = x.through(*aft, {true, {}});
    for (int64_t i = 0; i < after.size(); ++i) {
      const int64_t t = i / kDim % kLen, there = (i / kDim / kLen * kLen + 90) * kDim + i % kDim;
      const double gate = 1 / (1 + std::exp(-static_cast<double>(x.q[i])));
      const double want =
          t < 90 ? static_cast<double>(before[i]) : gate * static_cast<double>(x.v[there]);
      EXPECT_NEAR(static_cast<double>(after[i]), want, 100 * kEpsilon);
    }
  }
}

TEST(Aft, OfALongSequenceEqualsItsEquations) {
  constexpr int64_t kLong = 1500;
  for (const Given& given : kinds()) {
    const auto aft = build(given, true, 0.3, kLong);
    const Inputs x(1, kLong);
    std::vector<oracle::Array> weights;
    for (const Weight& weight : aft->weights())
      weights.push_back(bridge::array_of(weight.value.value()));
    const oracle::Array want = oracle::attention_free(
        bridge::array_of(x.q), bridge::array_of(x.k), bridge::array_of(x.v),
        bias_of(given, weights, given.contains("window") ? 20 : kLong, true), {.causal = true});
    EXPECT_LE(bridge::relative_error(x.through(*aft, {true, {}}), want.x), 20 * kEpsilon);
  }
}

// A sum of 65536 rounds as a random walk of as many steps, to about 80 roundings.
TEST(Aft, SumsOfSimpleHoldOverManyPositions) {
  constexpr int64_t kLong = 65536;
  const Inputs x(1, kLong);
  std::vector<double> want(static_cast<size_t>(x.q.size()));
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t c = 0; c < kDim; ++c) {
      double sum = 0, total = 0;
      for (int64_t t = 0; t < kLong; ++t) {
        const int64_t at = (head * kLong + t) * kDim + c;
        const double weight = std::exp(static_cast<double>(x.k[at]));
        sum += weight * static_cast<double>(x.v[at]), total += weight;
        want[static_cast<size_t>(at)] = sum / total / (1 + std::exp(-static_cast<double>(x.q[at])));
      }
    }
  const auto aft = build({{"kind", kSimple}}, true, 0, kLong);
  EXPECT_LE(bridge::relative_error(x.through(*aft, {true, {}}), want), 160 * kEpsilon);
}

TEST(Aft, CostsOfItsKindsAreAsDeclared) {
  for (const Given& given : kinds())
    for (const bool causal : {false, true})
      for (const int64_t len : {64, 300, 1000}) {
        const auto aft = build(given, causal, 0.3, len);
        const Cost want = aft->cost({2, kHeads, len, len, kDim, causal});
        const Inputs x(2, len);
        const double before = counters().flops;
        reset_memory_peak();
        const int64_t live = memory_use().live_total;
        {
          const NoGrad no_grad;
          x.through(*aft, {causal, {}});
        }
        const double forward = counters().flops - before;
        EXPECT_NEAR(forward / want.flops, 1, 1e-9) << len;
        EXPECT_NEAR(static_cast<double>(memory_use().peak_total - live) / want.peak_bytes, 1, 0.01)
            << len;
        const Var out = aft->forward(Var(x.q, true), Var(x.k, true), Var(x.v, true), {causal, {}});
        const double middle = counters().flops;
        out.backward(x.q);
        EXPECT_NEAR((counters().flops - middle) / want.backward_flops, 1, 1e-9) << len;
      }
}

TEST(Aft, DecodesWhatTheForwardSays) {
  for (const Given& given : kinds()) {
    const auto aft = build(given, true, 0.3);
    const Inputs x;
    const Tensor want = x.through(*aft, {true, {}});
    const auto decoder = aft->decoder(1, kLen);
    const auto rows = [](const Tensor& from, int64_t first, int64_t count) {
      const Tensor part({1, kHeads, count, kDim});
      for (int64_t head = 0; head < kHeads; ++head)
        std::copy_n(from.data() + (head * kLen + first) * kDim, count * kDim,
                    part.data() + head * count * kDim);
      return part;
    };
    decoder->extend(rows(x.k, 0, 45), rows(x.v, 0, 45));
    for (int64_t t = 45; t < kLen; ++t) {
      const Tensor out({1, kHeads, 1, kDim});
      decoder->step(rows(x.q, t, 1), rows(x.k, t, 1), rows(x.v, t, 1), out);
      EXPECT_LE(distance(out, rows(want, t, 1)), 50 * kEpsilon) << t;
    }
  }
}

}  // namespace
}  // namespace attn::aft_test
