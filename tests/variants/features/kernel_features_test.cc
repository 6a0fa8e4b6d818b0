// cosformer, taylor, rfa, gated_rfa and hedgehog: against
// slow twins of their own, at the borders of chunks; what they equal in special cases; decoding
// with weights that have moved from their start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/variants/twin_check.h"
#include "variants/catalog.h"

namespace attn::kernel_features_test {
namespace {

using oracle::Array;
using Params = std::map<std::string, ParamValue>;
using Pair = std::function<double(const std::vector<double>& x, const std::vector<double>& y,
                                  int64_t h, int64_t distance)>;

std::vector<double> row_of(const Array& a, int64_t b, int64_t h, int64_t i) {
  const oracle::Row row = a.row(b, h, i);
  return {row.begin(), row.end()};
}

// Σ w·v / Σ w over the pairs that are seen.
Array ratio(const std::vector<Array>& x, bool causal, const std::vector<int64_t>& lengths,
            const Pair& weight) {
  Array out(x[0].batch, x[0].heads, x[0].len, x[2].dim);
  for (int64_t b = 0; b < x[0].batch; ++b)
    for (int64_t h = 0; h < x[0].heads; ++h)
      for (int64_t i = 0; i < x[0].len; ++i) {
        double total = 0;
        for (int64_t j = 0; j < (lengths.empty() ? x[1].len : lengths[static_cast<size_t>(b)]);
             ++j) {
          if (causal && j > i) break;
          const double w = weight(row_of(x[0], b, h, i), row_of(x[1], b, h, j), h, i - j);
          total += w;
          for (int64_t c = 0; c < out.dim; ++c) out.at(b, h, i, c) += w * x[2].at(b, h, j, c);
        }
        for (int64_t c = 0; c < out.dim && total != 0; ++c) out.at(b, h, i, c) /= total;
      }
  return out;
}

double product(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (size_t c = 0; c < x.size(); ++c) sum += x[c] * y[c];
  return sum;
}

std::vector<double> times(const Array& w, int64_t h, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t f = 0; f < w.len; ++f) y.push_back(product(row_of(w, 0, h, f), x));
  return y;
}

double softmax_kernel(std::vector<double> x, std::vector<double> y) {
  double sum = 0;
  for (int sign = 0; sign < 2; ++sign) {
    for (std::vector<double>* z : {&x, &y}) {
      double total = 0;
      for (const double value : *z) total += std::exp(value);
      for (double& value : *z) value = std::log(std::exp(value) / total);
    }
    for (size_t c = 0; c < x.size(); ++c) sum += std::exp(x[c] + y[c]);
    for (double& value : x) value = -value;
    for (double& value : y) value = -value;
  }
  return sum;
}

void move_weights(const Attention& attention) {
  for (const Weight& weight : attention.weights()) {
    if (!weight.learned) continue;
    const Tensor moved = weight.value.value().clone();
    Rng random = rng(4, weight.name);
    for (real& value : moved.values()) value += static_cast<real>(0.3 * random.normal());
    weight.value.set_value(moved);
  }
}

struct Sizes {
  int64_t length;
  bool causal;
  std::vector<int64_t> lengths;
};

std::vector<Sizes> sizes() {
  std::vector<Sizes> result;
  for (const bool causal : {false, true})
    for (const int64_t n : {1, 64, 65, 129}) {
      result.push_back({n, causal, {}});
      if (n > 2) result.push_back({n, causal, {n - 1, n / 2}});
    }
  return result;
}

// expect_twin with moved weights.
void expect_twins(const std::string& variant, const Params& params, int64_t dim,
                  const std::function<Pair(const Attention&, const std::vector<Array>&)>& weight,
                  double scale = 1) {
  for (const Sizes& s : sizes()) {
    SCOPED_TRACE(testing::Message() << variant << " " << s.length << (s.causal ? " causal" : "")
                                    << (s.lengths.empty() ? "" : " padded"));
    const AttentionShape shape{.batch = 2,
                               .heads = 2,
                               .q_len = s.length,
                               .kv_len = s.length,
                               .head_dim = dim,
                               .causal = s.causal};
    bridge::expect_twin({variant, params, shape, s.lengths, scale},
                        [&](const Attention& attention, const Tensor&) -> bridge::Twins {
                          return [&, s](const std::vector<Array>& x) {
                            return ratio(x, s.causal, s.lengths, weight(attention, x));
                          };
                        });
  }
}

TEST(Cosformer, EqualsItsTwin) {
  // The span is the max_len of expect_twin, which is 3 above the length.
  expect_twins("cosformer", {}, 5, [](const Attention& attention, const std::vector<Array>&) {
    const auto span = static_cast<double>(attention.config().max_len);
    return [span](const auto& x, const auto& y, int64_t, int64_t distance) {
      double sum = 0;
      for (size_t c = 0; c < x.size(); ++c) sum += std::fmax(x[c], 0) * std::fmax(y[c], 0);
      return sum * std::cos(std::numbers::pi / 2 * static_cast<double>(distance) / span);
    };
  });
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
  EXPECT_TRUE(bridge::relative_error(got, want.x) <= 100 * kEpsilon)
      << bridge::relative_error(got, want.x);
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
TEST(Cosformer, SpanOfTheLengthDependsOnTheLength) {
  const auto attention =
      find_variant("cosformer")
          .build({1, 4, 100, true, 1, {}}, {{"span_from", std::string("length")}});
  const Tensor x = bridge::normal({1, 1, 30, 4}, "x");
  const Tensor prefix({1, 1, 20, 4});
  std::copy_n(x.data(), prefix.size(), prefix.data());
  const Tensor whole = attention->forward(Var(x), Var(x), Var(x), {true, {}}).value(),
               part = attention->forward(Var(prefix), Var(prefix), Var(prefix), {true, {}}).value();
  double moved = 0;
  for (int64_t i = 0; i < part.size(); ++i)
    moved = std::max(moved, static_cast<double>(std::abs(part[i] - whole[i])));
  EXPECT_GT(moved, 1e-3);
}

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

std::vector<double> unit(const std::vector<double>& x) {
  std::vector<double> y = x;
  for (double& value : y) value /= std::sqrt(product(x, x) + 1e-6);
  return y;
}

// The mean of cos(ω·(x̂ - ŷ)) with ω = scale ⊙ w.
double wave_kernel(const Array& w, const Array& scales, int64_t h, const std::vector<double>& x,
                   const std::vector<double>& y) {
  const std::vector<double> a = unit(x), b = unit(y);
  double sum = 0;
  for (int64_t f = 0; f < w.len; ++f) {
    double angle = 0;
    for (size_t c = 0; c < a.size(); ++c)
      angle += w.row(0, h, f)[c] * scales.row(0, 0, h)[c] * (a[c] - b[c]);
    sum += std::cos(angle);
  }
  return sum / static_cast<double>(w.len);
}

TEST(Rfa, EqualsItsTwin) {
  for (const int64_t directions : {64, 71})
    expect_twins("rfa", {{"directions", directions}, {"orthogonal", true}}, 5,
                 [](const Attention& attention, const std::vector<Array>& x) -> Pair {
                   const Array w = bridge::array_of(attention.weights()[0].value.value());
                   return [w, &x](const auto& q, const auto& k, int64_t h, int64_t) {
                     return wave_kernel(w, x[3], h, q, k);
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
  EXPECT_TRUE(bridge::relative_error(got, want.x) <= 0.03) << bridge::relative_error(got, want.x);
}

struct Gated {
  std::vector<Tensor> inputs;  // q, k, v, the gate
  std::vector<Var> vars;
  explicit Gated(int64_t n, double level, double spread) {
    for (const char* name : {"q", "k", "v"}) inputs.push_back(bridge::normal({2, 2, n, 5}, name));
    inputs.push_back(bridge::normal({2, 2, n, 1}, "gate", spread));
    for (real& value : inputs[3].values()) value += real(level);
  }
  void pad(const std::vector<int64_t>& lengths) const {
    for (size_t i = 1; i < 4; ++i) bridge::fill_padding(inputs[i], lengths, bridge::kNaN);
  }
  Var run(const Attention& attention, const std::vector<int64_t>& lengths) {
    for (const Tensor& t : inputs) vars.emplace_back(t, true);
    const std::vector<Var> gates = {vars[3]};
    return attention.forward(vars[0], vars[1], vars[2], {true, lengths}, gates);
  }
};

// The recurrence itself: S = g·S + (1 - g)·φ(k)ᵀv, as weights of pairs.
Array gated_twin(const std::vector<Array>& x, const Array& w, const std::vector<int64_t>& lengths) {
  Array out(x[0].batch, x[0].heads, x[0].len, x[2].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h) {
      std::vector<double> share;  // of each key in the state
      for (int64_t i = 0; i < out.len; ++i) {
        if (lengths.empty() || i < lengths[static_cast<size_t>(b)]) {
          const double keep = 1 / (1 + std::exp(-x[3].at(b, h, i, 0)));
          for (double& value : share) value *= keep;
          share.push_back(1 / (1 + std::exp(x[3].at(b, h, i, 0))));
        }
        double total = 0;
        for (int64_t j = 0; j < static_cast<int64_t>(share.size()); ++j) {
          const double weight =
              share[static_cast<size_t>(j)] *
              wave_kernel(w, x[4], h, row_of(x[0], b, h, i), row_of(x[1], b, h, j));
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
    for (const int64_t n : {1, 64, 65, 140})
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
        std::vector<Array> arrays;
        for (const Tensor& t : inputs) arrays.push_back(bridge::array_of(t));
        const Array want = gated_twin(arrays, w, lengths);
        EXPECT_TRUE(bridge::relative_error(out.value(), want.x) <= 400 * kEpsilon)
            << bridge::relative_error(out.value(), want.x);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads;
        for (const Var& var : x.vars) grads.push_back(var.grad());
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

TEST(Hedgehog, EqualsItsTwin) {
  expect_twins("hedgehog", {}, 5, [](const Attention&, const std::vector<Array>& x) -> Pair {
    return [&x](const auto& q, const auto& k, int64_t h, int64_t) {
      return softmax_kernel(times(x[3], h, q), times(x[4], h, k));
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
  const std::vector<std::pair<std::string, Params>> variants = {
      {"cosformer", {}}, {"taylor", {}}, {"rfa", {}}, {"hedgehog", {}}, {"gated_rfa", {}}};
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
      EXPECT_TRUE(worst <= 2000 * kEpsilon) << worst;
    }
}

}  // namespace
}  // namespace attn::kernel_features_test
