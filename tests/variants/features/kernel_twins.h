// What the tests of kernel features share: weights of pairs, weights that have moved from their
// start, twins at the borders of chunks, and inputs with a gate.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::kernel_twins {

using oracle::Array;
using Choices = std::map<std::string, ParamValue>;
using Pair = std::function<double(const std::vector<double>& x, const std::vector<double>& y,
                                  int64_t h, int64_t distance)>;

inline std::vector<double> row_of(const Array& a, int64_t b, int64_t h, int64_t i) {
  const oracle::Row row = a.row(b, h, i);
  return {row.begin(), row.end()};
}

// Σ w·v / Σ w over the pairs that are seen.
inline Array ratio(const std::vector<Array>& x, bool causal, const std::vector<int64_t>& lengths,
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

inline double product(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (size_t c = 0; c < x.size(); ++c) sum += x[c] * y[c];
  return sum;
}

inline std::vector<double> times(const Array& w, int64_t h, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t f = 0; f < w.len; ++f) {
    const double* const row = w.row(0, h, f).data();
    double sum = 0;
    for (size_t c = 0; c < x.size(); ++c) sum += row[c] * x[c];
    y.push_back(sum);
  }
  return y;
}

// The features of a row of a head.
using TwinFeatures = std::function<std::vector<double>(const std::vector<double>& row, int64_t h)>;

// ratio() of the weights of_q(x)·of_k(y), with the features of each row computed once.
inline Array ratio_of_features(const std::vector<Array>& x, bool causal,
                               const std::vector<int64_t>& lengths, const TwinFeatures& of_q,
                               const TwinFeatures& of_k) {
  const auto mapped = [](const Array& rows, const TwinFeatures& of) {
    Array result;
    for (int64_t b = 0; b < rows.batch; ++b)
      for (int64_t h = 0; h < rows.heads; ++h)
        for (int64_t i = 0; i < rows.len; ++i) {
          const std::vector<double> f = of(row_of(rows, b, h, i), h);
          if (result.x.empty())
            result = Array(rows.batch, rows.heads, rows.len, static_cast<int64_t>(f.size()));
          std::copy(f.begin(), f.end(), &result.at(b, h, i, 0));
        }
    return result;
  };
  return ratio({mapped(x[0], of_q), mapped(x[1], of_k), x[2]}, causal, lengths,
               [](const auto& f, const auto& g, int64_t, int64_t) { return product(f, g); });
}

// softmax(x) and softmax(-x), one after the other.
inline std::vector<double> softmax_features(std::vector<double> x) {
  std::vector<double> features;
  for (int sign = 0; sign < 2; ++sign) {
    double total = 0;
    for (const double value : x) total += std::exp(value);
    for (const double value : x) features.push_back(std::exp(value) / total);
    for (double& value : x) value = -value;
  }
  return features;
}

inline void move_weights(const Attention& attention) {
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

inline std::vector<Sizes> sizes() {
  std::vector<Sizes> result;
  for (const bool causal : {false, true})
    for (const int64_t n : {1, 64, 65, 129}) {
      result.push_back({n, causal, {}});
      if (n > 2) result.push_back({n, causal, {n - 1, n / 2}});
    }
  return result;
}

// The twin at these sizes.
using TwinAt = std::function<bridge::Twins(const Attention& attention, const Sizes& s)>;

inline void expect_twins_of(const std::string& variant, const Choices& params, int64_t dim,
                            const TwinAt& twin, double scale = 1, double step = 1e-4) {
  for (const Sizes& s : sizes()) {
    SCOPED_TRACE(testing::Message() << variant << " " << s.length << (s.causal ? " causal" : "")
                                    << (s.lengths.empty() ? "" : " padded"));
    const AttentionShape shape{.batch = 2,
                               .heads = 2,
                               .q_len = s.length,
                               .kv_len = s.length,
                               .head_dim = dim,
                               .causal = s.causal};
    bridge::expect_twin({variant, params, shape, s.lengths, scale, step},
                        [&](const Attention& attention, const Tensor&) -> bridge::Twins {
                          return twin(attention, s);
                        });
  }
}

inline void expect_twins(
    const std::string& variant, const Choices& params, int64_t dim,
    const std::function<Pair(const Attention&, const std::vector<Array>&)>& weight,
    double scale = 1, double step = 1e-4) {
  const TwinAt twin = [&](const Attention& attention, const Sizes& s) -> bridge::Twins {
    return [&, s](const std::vector<Array>& x) {
      return ratio(x, s.causal, s.lengths, weight(attention, x));
    };
  };
  expect_twins_of(variant, params, dim, twin, scale, step);
}

inline std::vector<double> unit(const std::vector<double>& x) {
  std::vector<double> y = x;
  for (double& value : y) value /= std::sqrt(product(x, x) + 1e-6);
  return y;
}

// Features whose products are the mean of cos(ω·(x̂ - ŷ)) with ω = scale ⊙ w: cosines and sines.
inline std::vector<double> wave_features(const Array& w, const Array& scales, int64_t h,
                                         const std::vector<double>& x) {
  std::vector<double> scaled = unit(x), features;
  for (size_t c = 0; c < scaled.size(); ++c)
    scaled[c] *= scales.at(0, 0, h, static_cast<int64_t>(c));
  for (const double angle : times(w, h, scaled))
    for (const double part : {std::cos(angle), std::sin(angle)})
      features.push_back(part / std::sqrt(static_cast<double>(w.len)));
  return features;
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

}  // namespace attn::kernel_twins
