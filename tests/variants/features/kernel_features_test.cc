// Variants of random and of fixed features of a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/variants/features/kernel_twins.h"

namespace attn::kernel_features_test {
namespace {

// cosformer, taylor, rfa and hedgehog against slow twins of their own, at the borders of chunks;
// what they equal in special cases; decoding with weights that have moved from their start.

using namespace kernel_twins;

TEST(Cosformer, EqualsItsTwin) {
  // The span is the max_len of expect_twin, which is 3 above the length.
  expect_twins(
      "cosformer", {}, 5,
      [](const Attention& attention, const std::vector<Array>&) {
        const auto span = static_cast<double>(attention.config().max_len);
        return [span](const auto& x, const auto& y, int64_t, int64_t distance) {
          double sum = 0;
          for (size_t c = 0; c < x.size(); ++c) sum += std::fmax(x[c], 0) * std::fmax(y[c], 0);
          return sum * std::cos(std::numbers::pi / 2 * static_cast<double>(distance) / span);
        };
      },
      1, 1e-6);  // a step that crosses no kink of relu
}

TEST(Cosformer, EqualsReluFeaturesForAnEndlessSpan) {
  const Var q(bridge::normal({1, 2, 80, 6}, "q")), k(bridge::normal({1, 2, 80, 6}, "k")),
      v(bridge::normal({1, 2, 80, 6}, "v"));
  const auto wide =
      find_variant("cosformer").build({2, 6, 80, true, 1, {}}, {{"span", int64_t{1'000'000'000}}});
  const Array want =
      ratio({bridge::array_of(q.value()), bridge::array_of(k.value()), bridge::array_of(v.value())},
            true, {}, [](const auto& x, const auto& y, int64_t, int64_t) {
              double sum = 0;
              for (size_t c = 0; c < x.size(); ++c) sum += std::fmax(x[c], 0) * std::fmax(y[c], 0);
              return sum;
            });
  const Tensor got = wide->forward(q, k, v, {true, {}}).value();
  EXPECT_LE(bridge::relative_error(got, want.x), 100 * kEpsilon);
}

TEST(Cosformer, RegressionPositionsBeyondTheSpanAreRefused) {
  const VariantInfo& info = find_variant("cosformer");
  const auto attention = info.build({1, 4, 100, true, 1, {}}, {{"span", int64_t{20}}});
  EXPECT_NO_THROW(attention->decoder(1, 20));
  EXPECT_THROW(attention->decoder(1, 21), Error);
  const Var x(bridge::normal({1, 1, 21, 4}, "x"));
  EXPECT_THROW(attention->forward(x, x, x, {true, {}}), Error);
  const auto of_max_len = info.build({1, 4, 100, true, 1, {}}, {});
  EXPECT_NO_THROW(of_max_len->decoder(1, 100));
  EXPECT_THROW(of_max_len->decoder(1, 101), Error);
}

// As the authors' code has it: the outputs of a prefix depend on how long the whole is.
Pair taylor_weight(const std::vector<Array>& x) {
  return [&x](const auto& q, const auto& k, int64_t h, int64_t) {
    const double s =
        product(times(x[3], h, q), times(x[4], h, k)) / std::sqrt(static_cast<double>(x[3].len));
    return 1 + s + s * s / 2;
  };
}

TEST(Taylor, EqualsTheQuadraticForm) {
  for (const int64_t dim : {1, 5})
    expect_twins("taylor", {{"dim", dim}}, 6,
                 [](const Attention&, const std::vector<Array>& x) { return taylor_weight(x); });
}

TEST(Taylor, TheWidestProjectionAndOneMore) {
  const AttentionShape shape{
      .batch = 1, .heads = 1, .q_len = 70, .kv_len = 70, .head_dim = 66, .causal = true};
  bridge::expect_twin({"taylor", {{"dim", int64_t{64}}}, shape, {}, 1},
                      [&](const Attention&, const Tensor&) -> bridge::Twins {
                        return [](const std::vector<Array>& x) {
                          return ratio(x, true, {}, taylor_weight(x));
                        };
                      });
  EXPECT_THROW(find_variant("taylor").build({1, 80, 9, true, 1, {}}, {{"dim", int64_t{65}}}),
               Error);
}

TEST(Taylor, QueriesOfZeroGetTheRunningMean) {
  const auto attention = find_variant("taylor").build({1, 6, 100, true, 1, {}}, {});
  const Tensor v = bridge::normal({1, 1, 100, 6}, "v");
  const Tensor out = attention
                         ->forward(Var(Tensor::zeros({1, 1, 100, 6})),
                                   Var(bridge::normal({1, 1, 100, 6}, "k")), Var(v), {true, {}})
                         .value();
  double sum = 0;
  for (int64_t i = 0; i < 100; ++i) {
    sum += static_cast<double>(v[i * 6]);
    EXPECT_NEAR(static_cast<double>(out[i * 6]), sum / static_cast<double>(i + 1), 50 * kEpsilon);
  }
}

TEST(Rfa, EqualsItsTwin) {
  for (const int64_t directions : {64, 71})
    expect_twins_of("rfa", {{"directions", directions}, {"orthogonal", true}}, 5,
                    [](const Attention& attention, const Sizes& s) -> bridge::Twins {
                      const Array w = bridge::array_of(attention.weights()[0].value.value());
                      return [w, s](const std::vector<Array>& x) {
                        const TwinFeatures waves = [&](const auto& row, int64_t h) {
                          return wave_features(w, x[3], h, row);
                        };
                        return ratio_of_features(x, s.causal, s.lengths, waves, waves);
                      };
                    });
}

TEST(Rfa, ManyDirectionsApproachTheSoftmaxOfUnitRows) {
  const auto attention =
      find_variant("rfa").build({2, 6, 60, false, 1, {}}, {{"directions", int64_t{1} << 14}});
  const Var q(bridge::normal({1, 2, 60, 6}, "q")), k(bridge::normal({1, 2, 60, 6}, "k")),
      v(bridge::normal({1, 2, 60, 6}, "v"));
  const Array want =
      ratio({bridge::array_of(q.value()), bridge::array_of(k.value()), bridge::array_of(v.value())},
            false, {}, [](const auto& x, const auto& y, int64_t, int64_t) {
              return std::exp(product(unit(x), unit(y)));
            });
  const Tensor got = attention->forward(q, k, v).value();
  EXPECT_LE(bridge::relative_error(got, want.x), 0.03);
}

TEST(Hedgehog, EqualsItsTwin) {
  expect_twins_of("hedgehog", {}, 5, [](const Attention&, const Sizes& s) -> bridge::Twins {
    return [s](const std::vector<Array>& x) {
      const auto by = [](const Array& w) -> TwinFeatures {
        return [&w](const auto& row, int64_t h) { return softmax_features(times(w, h, row)); };
      };
      return ratio_of_features(x, s.causal, s.lengths, by(x[3]), by(x[4]));
    };
  });
}

TEST(Hedgehog, WithoutProjectionsItIsTheMean) {
  const auto attention = find_variant("hedgehog").build({1, 6, 70, false, 1, {}}, {});
  for (const Weight& weight : attention->weights())
    weight.value.set_value(Tensor::zeros(weight.value.shape()));
  const Tensor v = bridge::normal({1, 1, 70, 6}, "v"), q = bridge::normal({1, 1, 70, 6}, "q");
  const Tensor out = attention->forward(Var(q), Var(q), Var(v)).value();
  double mean = 0;
  for (int64_t i = 0; i < 70; ++i) mean += static_cast<double>(v[i * 6]) / 70;
  for (int64_t i = 0; i < 70; ++i)
    EXPECT_NEAR(static_cast<double>(out[i * 6]), mean, 50 * kEpsilon);
}

TEST(KernelFeatures, DecodeEqualsForwardWithMovedWeights) {
  const std::string trigonometric = "trigonometric";
  const std::vector<std::pair<std::string, Choices>> variants = {
      {"cosformer", {}}, {"taylor", {}},    {"rfa", {}},
      {"hedgehog", {}},  {"gated_rfa", {}}, {"performer", {{"features_kind", trigonometric}}}};
  constexpr int64_t n = 150;
  for (const auto& [name, params] : variants)
    for (const int64_t prefill : {0, 1, 64, 130}) {
      SCOPED_TRACE(testing::Message() << name << " after " << prefill);
      const auto attention = find_variant(name).build({2, 5, n, true, 3, {}}, params);
      move_weights(*attention);
      const NoGrad no_grad;
      Gated x(n, 1, 1);
      const bool gated = !attention->gates().empty();
      std::vector<Var> gates;
      if (gated) gates.emplace_back(x.inputs[3]);
      const Array want = bridge::array_of(
          attention
              ->forward(Var(x.inputs[0]), Var(x.inputs[1]), Var(x.inputs[2]), {true, {}}, gates)
              .value());
      const auto part = [&](size_t which, int64_t begin, int64_t end) {
        const Tensor& from = x.inputs[which];
        const Tensor to(from.shape().with(2, end - begin));
        const int64_t dim = from.dim(3);
        for (int64_t head = 0; head < 4; ++head)
          std::copy_n(from.data() + (head * n + begin) * dim, (end - begin) * dim,
                      to.data() + head * (end - begin) * dim);
        return to;
      };
      const auto decoder = attention->decoder(2, n);
      const auto gates_at = [&](int64_t begin, int64_t end) {
        return gated ? std::vector<Tensor>{part(3, begin, end)} : std::vector<Tensor>{};
      };
      if (prefill > 0)
        decoder->extend(part(1, 0, prefill), part(2, 0, prefill), {}, gates_at(0, prefill));
      const Tensor out({2, 2, 1, 5});
      double worst = 0;
      for (int64_t i = prefill; i < n; ++i) {
        decoder->step(part(0, i, i + 1), part(1, i, i + 1), part(2, i, i + 1), out,
                      gates_at(i, i + 1));
        for (int64_t at = 0; at < out.size(); ++at)
          worst = std::max(worst, std::abs(static_cast<double>(out[at]) -
                                           want.at(at / 10, at / 5 % 2, i, at % 5)));
      }
      EXPECT_LE(worst, 2000 * kEpsilon);
    }
}

// gated_rfa against its recurrence, one position after the other, with the gradients of all inputs;
// a constant gate is an exponential mean.

// The recurrence itself: S = g·S + (1 - g)·φ(k)ᵀv, as weights of pairs.
Array gated_twin(const std::vector<Array>& x, const Array& w, const std::vector<int64_t>& lengths) {
  Array out(x[0].batch, x[0].heads, x[0].len, x[2].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h) {
      std::vector<double> share;                  // of each key in the state
      std::vector<std::vector<double>> features;  // of each key
      for (int64_t i = 0; i < out.len; ++i) {
        features.push_back(wave_features(w, x[4], h, row_of(x[1], b, h, i)));
        const std::vector<double> asked = wave_features(w, x[4], h, row_of(x[0], b, h, i));
        if (lengths.empty() || i < lengths[static_cast<size_t>(b)]) {
          const double keep = 1 / (1 + std::exp(-x[3].at(b, h, i, 0)));
          for (double& value : share) value *= keep;
          share.push_back(1 / (1 + std::exp(x[3].at(b, h, i, 0))));
        }
        double total = 0;
        for (int64_t j = 0; j < static_cast<int64_t>(share.size()); ++j) {
          const double weight =
              share[static_cast<size_t>(j)] * product(asked, features[static_cast<size_t>(j)]);
          total += weight;
          for (int64_t c = 0; c < out.dim; ++c) out.at(b, h, i, c) += weight * x[2].at(b, h, j, c);
        }
        for (int64_t c = 0; c < out.dim && total != 0; ++c) out.at(b, h, i, c) /= total;
      }
    }
  return out;
}

TEST(GatedRfa, EqualsTheRecurrenceForwardAndBackward) {
  for (const auto& [level, spread] : {std::pair{0.0, 1.0}, {3.0, 1.0}, {-2.0, 3.0}})
    for (const int64_t n :
         level == 0 ? std::vector<int64_t>{1, 64, 65, 140} : std::vector{int64_t{65}})
      for (const std::vector<int64_t>& lengths :
           {std::vector<int64_t>{}, {n / 2, n - 1}, {n - 1, 0}}) {
        SCOPED_TRACE(testing::Message() << n << (lengths.empty() ? "" : " padded"));
        const auto attention = find_variant("gated_rfa").build({2, 5, n, true, 3, {}}, {});
        move_weights(*attention);
        Gated x(n, level, spread);
        x.pad(lengths);
        const Var out = x.run(*attention, lengths);
        const Array w = bridge::array_of(attention->weights()[0].value.value());
        const Var scales = attention->weights()[1].value;
        std::vector<Tensor> inputs = x.inputs;
        inputs.push_back(scales.value());
        std::vector<Array> arrays = bridge::arrays_of(inputs);
        const Array want = gated_twin(arrays, w, lengths);
        EXPECT_LE(bridge::relative_error(out.value(), want.x), 400 * kEpsilon);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads = bridge::grads_of(x.vars);
        grads.push_back(scales.grad());
        bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<Array>& a) {
          return gated_twin(a, w, lengths);
        });
      }
}

// Equal rows have equal kernels: what is left is the exponential mean of the values.
TEST(GatedRfa, AConstantGateOfEqualRowsIsAnExponentialMean) {
  constexpr int64_t n = 3000;
  const auto attention = find_variant("gated_rfa").build({1, 4, n, true, 3, {}}, {});
  const Tensor ones = Tensor::full({1, 1, n, 4}, 1), v = bridge::normal({1, 1, n, 4}, "v"),
               gate = Tensor::full({1, 1, n, 1}, real(1.5));
  const std::vector<Var> gates = {Var(gate)};
  const Tensor out = attention->forward(Var(ones), Var(ones), Var(v), {true, {}}, gates).value();
  const double keep = 1 / (1 + std::exp(-1.5));
  double mean = 0, total = 0;
  for (int64_t i = 0; i < n; ++i) {
    mean = keep * mean + (1 - keep) * static_cast<double>(v[i * 4]);
    total = keep * total + (1 - keep);
    ASSERT_NEAR(static_cast<double>(out[i * 4]), mean / total, 100 * kEpsilon) << i;
  }
}

}  // namespace
}  // namespace attn::kernel_features_test
