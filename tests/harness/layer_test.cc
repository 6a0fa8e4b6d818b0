// A layer against the same layer written out in double loops, pre-norm and post-norm, with and
// without padding.
#include "harness/model/layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/toy.h"

namespace attn {
namespace {

using Rows = std::vector<std::vector<double>>;
using Named = std::map<std::string, Tensor>;

constexpr int64_t kWidth = 6, kHeads = 3, kHidden = 5;

Rows times(const Rows& x, const Tensor& w, const Tensor* bias = nullptr) {
  Rows y;
  for (const auto& row : x) {
    auto& out = y.emplace_back(static_cast<size_t>(w.dim(1)));
    for (int64_t c = 0; c < w.dim(1); ++c) {
      double total = bias ? static_cast<double>((*bias)[c]) : 0;
      for (int64_t r = 0; r < w.dim(0); ++r)
        total += row[static_cast<size_t>(r)] * static_cast<double>(w[r * w.dim(1) + c]);
      out[static_cast<size_t>(c)] = total;
    }
  }
  return y;
}

Rows normed(Rows x, const Tensor& gain, const Tensor& bias) {
  for (auto& row : x) {
    double mean = 0, variance = 0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    for (const double value : row)
      variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = (row[c] - mean) / std::sqrt(variance + 1e-5) *
                   static_cast<double>(gain[static_cast<int64_t>(c)]) +
               static_cast<double>(bias[static_cast<int64_t>(c)]);
  }
  return x;
}

Rows plus(Rows x, const Rows& y) {
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t c = 0; c < x[i].size(); ++c) x[i][c] += y[i][c];
  return x;
}

// Head h reads columns h·dim .. (h+1)·dim of q, k and v and writes the same columns.
Rows attended(const Rows& x, const Named& w, size_t visible) {
  const Rows q = times(x, w.at("W_q")), k = times(x, w.at("W_k")), v = times(x, w.at("W_v"));
  Rows out(x.size(), std::vector<double>(kWidth, 0.0));
  const size_t dim = kWidth / kHeads;
  for (size_t first = 0; first < kWidth; first += dim)
    for (size_t i = 0; i < x.size(); ++i) {
      std::vector<double> weights(visible);
      double total = 0;
      for (size_t j = 0; j < visible; ++j) {
        double logit = 0;
        for (size_t c = first; c < first + dim; ++c) logit += q[i][c] * k[j][c];
        total += weights[j] = std::exp(logit / std::sqrt(static_cast<double>(dim)));
      }
      for (size_t j = 0; j < visible; ++j)
        for (size_t c = first; c < first + dim; ++c) out[i][c] += weights[j] / total * v[j][c];
    }
  return times(out, w.at("W_o"));
}

Rows fed_forward(const Rows& x, const Named& w) {
  Rows hidden = times(x, w.at("feed_forward.hidden"), &w.at("feed_forward.hidden_bias"));
  for (auto& row : hidden)
    for (double& value : row) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
  return times(hidden, w.at("feed_forward.output"), &w.at("feed_forward.output_bias"));
}

Rows layer(const Rows& x, const Named& w, Norm norm, size_t visible) {
  const auto norm_1 = [&](const Rows& y) {
    return normed(y, w.at("attention_norm.gain"), w.at("attention_norm.bias"));
  };
  const auto norm_2 = [&](const Rows& y) {
    return normed(y, w.at("feed_forward_norm.gain"), w.at("feed_forward_norm.bias"));
  };
  if (norm == Norm::pre) {
    const Rows middle = plus(x, attended(norm_1(x), w, visible));
    return plus(middle, fed_forward(norm_2(middle), w));
  }
  const Rows middle = norm_1(plus(x, attended(x, w, visible)));
  return norm_2(plus(middle, fed_forward(middle, w)));
}

LayerConfig config_of(const VariantInfo& variant, Norm norm, double dropout = 0) {
  return {.variant = &variant,
          .width = kWidth,
          .heads = kHeads,
          .feed_forward = kHidden,
          .max_len = 4,
          .norm = norm,
          .dropout = dropout,
          .seed = 5};
}

TEST(Layer, EqualsTheLayerWrittenOut) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  for (const Norm norm : {Norm::pre, Norm::post})
    for (const bool padded : {false, true}) {
      const Layer made(config_of(plain, norm));
      Named weights;
      for (const Weight& weight : made.weights()) {
        // Gains of one and biases of zero would hide a missing one.
        if (weight.value.shape().rank() == 1)
          weight.value.set_value(Tensor::normal(weight.value.shape(), rng(1, weight.name)));
        weights[weight.name] = weight.value.value();
      }
      EXPECT_EQ(weights.size(), 12u);
      const std::vector<int64_t> lengths =
          padded ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{};
      const Tensor x = Tensor::normal({2, 4, kWidth}, rng(2, "x"));
      const Tensor y = made.forward(Var(x), lengths).value();
      for (int64_t b = 0; b < 2; ++b) {
        Rows rows(4, std::vector<double>(kWidth));
        for (size_t at = 0; at < 4 * kWidth; ++at)
          rows[at / kWidth][at % kWidth] =
              static_cast<double>(x[b * 4 * kWidth + static_cast<int64_t>(at)]);
        const Rows expected = layer(rows, weights, norm, padded && b == 0 ? 2 : 4);
        // Five sums of at most six products of numbers of size 10: a hundred roundings.
        for (size_t at = 0; at < 4 * kWidth; ++at)
          EXPECT_NEAR(static_cast<double>(y[b * 4 * kWidth + static_cast<int64_t>(at)]),
                      expected[at / kWidth][at % kWidth], 100 * 10 * static_cast<double>(kEpsilon));
      }
    }
}

TEST(Layer, DropsOnlyWhenGivenAStream) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  const Layer kept(config_of(plain, Norm::pre)), dropping(config_of(plain, Norm::pre, 0.5));
  const Var x(Tensor::normal({2, 4, kWidth}, rng(2, "x")));
  Rng stream = rng(3, "dropout"), again = rng(3, "dropout");
  const Tensor evaluated = dropping.forward(x, {}).value(),
               trained = dropping.forward(x, {}, &stream).value();
  const Tensor repeated = dropping.forward(x, {}, &again).value(),
               expected = kept.forward(x, {}).value();
  int64_t changed = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(evaluated[i], expected[i]);
    EXPECT_EQ(trained[i], repeated[i]);
    changed += trained[i] != expected[i];
  }
  EXPECT_GT(changed, expected.size() / 2);
}

TEST(Layer, RefusesWhatDoesNotFit) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  LayerConfig config = config_of(plain, Norm::pre);
  config.heads = 4;
  EXPECT_THROW(Layer{config}, Error);
  EXPECT_THROW(
      Layer(config_of(plain, Norm::pre)).forward(Var(Tensor::zeros({2, 4, kWidth + 1})), {}),
      Error);
}

}  // namespace
}  // namespace attn
