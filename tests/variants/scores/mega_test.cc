// mega against its equations in double; its averages as a convolution; chunks; what it is without
// averages, without an update and of a long sequence; and decoding within chunks.
#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"
#include "variants/convolution/convolution.h"
#include "variants/reference/mega.h"
#include "variants/scans/scans.h"
#include "variants/scores/scores.h"

namespace attn::mega_test {
namespace {

using namespace mixers;

const ParamValue kTwo = int64_t{2}, kFive = int64_t{5};

Given small(int64_t chunk, const char* score = "softmax") {
  return {{"base", kFive}, {"states", kTwo}, {"chunk", chunk}, {"score", std::string(score)}};
}

Var named(const Attention& mega, const std::string& name) {
  for (const Weight& weight : mega.weights())
    if (weight.name == name) return weight.value;
  throw Error("no weight " + name);
}

TEST(Mega, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const char* score : {"softmax", "relu2"})
      for (const int64_t chunk : {0, 1, 4, 10})
        for (const Case& at : cases(causal))
          if (at.len < 100)
            expect_twin("mega", at, small(chunk, score), [&](const auto& x, const auto& w) {
              return oracle::mega(x, w, {causal, score == std::string("softmax"), chunk},
                                  {at.lengths});
            });
}

// The paper's kernel, Σ_n γ·p·β·(1 - p·a)^t / √N, by Fourier transforms.
TEST(Mega, AveragesAreAConvolution) {
  constexpr int64_t kLen = 700, kWidth = 6, kStates = 3;
  const auto draw = [](const char* name) { return Var(bridge::normal({kStates, kWidth}, name)); };
  const AverageWeights w{draw("step"), draw("damping"), draw("input"), draw("output")};
  const auto at = [](const Var& x, int64_t i) { return static_cast<double>(x.value()[i]); };
  const Tensor kernel = Tensor::zeros({kLen, kWidth}), x = bridge::normal({1, kLen, kWidth}, "x");
  for (int64_t t = 0; t < kLen; ++t)
    for (int64_t i = 0; i < kStates * kWidth; ++i) {
      const double p = oracle::logistic(at(w.step, i)), a = oracle::logistic(at(w.damping, i));
      kernel[t * kWidth + i % kWidth] += static_cast<real>(
          at(w.output, i) * p * at(w.input, i) * std::pow(1 - p * a, static_cast<double>(t)) /
          std::sqrt(static_cast<double>(kStates)));
    }
  const Var rows = reshape(Var(x), {1, 1, kLen, kWidth});
  for (const ConvolutionForm form : {ConvolutionForm::direct, ConvolutionForm::fft}) {
    const Tensor want =
        long_convolution(rows, Var(kernel), {}, {.causal = true, .lengths = {}, .form = form})
            .value();
    EXPECT_LE(
        bridge::relative_error(moving_average(Var(x), {w}, {}).value(), bridge::array_of(want).x),
        100 * kEpsilon);
  }
}

TEST(Mega, AChunkOfTheLengthIsTheWhole) {
  for (const bool causal : {false, true}) {
    const Case at{2, 1, 37, 6, causal, {}};
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    const auto run = [&](int64_t chunk) {
      const auto mega = build("mega", at, small(chunk));
      draw_weights(*mega);
      return as_mixer(*mega)->mix(Var(x), at.mask()).value();
    };
    EXPECT_TRUE(bridge::same_bits(run(37), run(0)));
    EXPECT_TRUE(bridge::same_bits(run(100), run(0)));
    EXPECT_GT(distance(run(36), run(0)), 1e-3);
  }
}

// Of no update (u = 0) the input is left; of a whole one (u = 1) silu of the candidate.
TEST(Mega, WithoutAnUpdateIsTheInput) {
  const Case at{2, 2, 20, 3, true, {}};
  const auto mega = build("mega", at, small(7));
  draw_weights(*mega);
  named(*mega, "update").set_value(Tensor::zeros({6, 6}));
  named(*mega, "update_bias").set_value(Tensor::full({6}, -1000));
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  EXPECT_TRUE(bridge::same_bits(as_mixer(*mega)->mix(Var(x), at.mask()).value(), x));
}

// Without averages (β = 0) queries, keys and gates come from silu(ω⊙x): a gated attention unit,
// then silu. The update adds x to what it has taken x from, which leaves the rounding of x, here
// some ten times as large as the unit's output.
TEST(Mega, WithoutAveragesIsAGatedUnit) {
  const Case at{2, 1, 30, 6, true, {}};
  const auto mega = build("mega", at, small(0, "relu2"));
  draw_weights(*mega);
  for (const Weight& weight : mega->weights())
    if (weight.name.ends_with("_bias") || weight.name == "update" || weight.name == "candidate" ||
        weight.name == "input")
      weight.value.set_value(Tensor::zeros(weight.value.shape()));
  named(*mega, "update_bias").set_value(Tensor::full({6}, 100));
  const auto w = [&](const char* name) { return named(*mega, name); };
  const GatedUnitWeights gau{.gate = w("reset"),
                             .value = w("value"),
                             .base = w("base"),
                             .query_scale = w("query_scale"),
                             .query_shift = w("query_shift"),
                             .key_scale = w("key_scale"),
                             .key_shift = w("key_shift"),
                             .out = w("out")};
  const Var x(Tensor::normal(at.rows(), rng(1, "x"))), scaled = multiply(x, w("skip"));
  const GatedUnitRows read = gated_unit_rows(multiply(scaled, sigmoid(scaled)), gau);
  const Var v = gated_unit_rows(x, gau).v;
  const Var mixed = relu_attention(read.q, read.k, v, at.mask(), ReluPower::squared);
  const Var unit = linear(multiply(read.gate, reshape(mixed, read.gate.shape())), gau.out, {});
  EXPECT_LE(
      distance(as_mixer(*mega)->mix(x, at.mask()).value(), multiply(unit, sigmoid(unit)).value()),
      300 * kEpsilon);
}

TEST(Mega, OfALongSequenceEqualsItsEquations) {
  for (const int64_t chunk : {0, 500}) {
    const Case at{1, 1, 2500, 2, true, {}};
    const auto mega = build("mega", at, small(chunk));
    draw_weights(*mega);
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    std::vector<oracle::Array> weights;
    for (const Weight& weight : mega->weights())
      weights.push_back(bridge::array_of(flat(weight.value.value())));
    const oracle::Array want = oracle::mega(bridge::array_of(with_one_head(x)), weights,
                                            {.causal = true, .softmax = true, .chunk = chunk}, {});
    EXPECT_LE(bridge::relative_error(as_mixer(*mega)->mix(Var(x), at.mask()).value(), want.x),
              20 * kEpsilon);
  }
}

TEST(Mega, DecodesWhatTheForwardSays) {
  for (const char* score : {"softmax", "relu2"})
    for (const int64_t chunk : {0, 7, 50}) {
      const Case at{2, 1, 40, 6, true, {}};
      const auto mega = build("mega", at, small(chunk, score));
      draw_weights(*mega);
      const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
      const Tensor want = as_mixer(*mega)->mix(Var(x), at.mask()).value();
      const auto rows = [&](const Tensor& from, int64_t first, int64_t last) {
        const Tensor part({2, 1, last - first, 6});
        for (int64_t b = 0; b < 2; ++b)
          std::copy_n(from.data() + (b * at.len + first) * 6, (last - first) * 6,
                      part.data() + b * (last - first) * 6);
        return part;
      };
      const auto decoder = mega->decoder(2, at.len);
      decoder->extend(rows(x, 0, 10), rows(x, 0, 10));
      for (int64_t t = 10; t < at.len; ++t) {
        const Tensor row = rows(x, t, t + 1), out(row.shape());
        decoder->step(row, row, row, out);
        EXPECT_LE(distance(out, rows(want, t, t + 1)), 100 * kEpsilon) << chunk << ' ' << t;
      }
    }
}

TEST(Mega, CostsOfChunksAreAsDeclared) {
  for (const char* score : {"softmax", "relu2"})
    for (const bool causal : {false, true})
      for (const int64_t chunk : {64, 100, 300, 1000}) {
        const Case at{2, 1, 600, 16, causal, {}};
        const auto mega = build("mega", at, {{"chunk", chunk}, {"score", std::string(score)}});
        const Cost want = mega->cost({2, 1, 600, 600, 16, causal});
        const NoGrad no_grad;
        const Var x(Tensor::normal(at.rows(), rng(1, "x")));
        const double flops = counters().flops;
        reset_memory_peak();
        const int64_t live = memory_use().live_total;
        as_mixer(*mega)->mix(x, at.mask());
        EXPECT_NEAR((counters().flops - flops) / want.flops, 1, 1e-9) << chunk << ' ' << score;
        EXPECT_NEAR(static_cast<double>(memory_use().peak_total - live) / want.peak_bytes, 1, 0.01)
            << chunk << ' ' << score;
      }
}

}  // namespace
}  // namespace attn::mega_test
