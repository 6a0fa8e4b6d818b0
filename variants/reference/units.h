// Units that bring their own projections, the slow, obvious way: gmlp and gau, in double, one sum
// after the other. Rows are Array [batch, 1, len, width], weights in the variant's order.
#pragma once

#include <algorithm>
#include <cmath>

#include "variants/reference/mixers.h"

namespace oracle {

inline double silu(double x) { return x * logistic(x); }
inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

// f(x·W + bias) of a row; bias null: none.
template <class Function>
std::vector<double> through(Row row, const Array& w, const Array* bias, const Function& f) {
  std::vector<double> to = times(row, w);
  for (std::size_t j = 0; j < to.size(); ++j) to[j] = f(to[j] + (bias ? bias->x[j] : 0));
  return to;
}

// Hua et al. 2022, section 3.1. w: gate, value, base, scale and shift of queries and of keys, out.
inline Array gated_unit(const Array& x, const std::vector<Array>& w, bool causal,
                        const Valid& valid, const std::vector<Index>& wanted = {}) {
  const auto same = [](double value) { return value; };
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  Array out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b) {
    const Index n = valid.of(x, b);
    std::vector<std::vector<double>> q, k, v;
    for (Index i = 0; i < n; ++i) {
      const std::vector<double> z = through(x.row(b, 0, i), w[2], nullptr, silu);
      q.emplace_back(), k.emplace_back();
      for (Index c = 0; c < w[2].dim; ++c) {
        const double value = z[static_cast<std::size_t>(c)];
        q.back().push_back(value * w[3].at(0, 0, 0, c) + w[4].at(0, 0, 0, c));
        k.back().push_back(value * w[5].at(0, 0, 0, c) + w[6].at(0, 0, 0, c));
      }
      v.push_back(through(x.row(b, 0, i), w[1], nullptr, silu));
    }
    for (const Index i : rows) {
      if (i >= n) continue;
      const Index seen = causal ? i + 1 : n;
      std::vector<double> mixed(static_cast<std::size_t>(w[1].dim));
      for (Index j = 0; j < seen; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const double score = dot(q[static_cast<std::size_t>(i)], k[at]) / static_cast<double>(seen);
        const double weight = score > 0 ? score * score : 0;
        add_times(weight, v[at].data(), mixed.data(), w[1].dim);
      }
      const std::vector<double> gate = through(x.row(b, 0, i), w[0], nullptr, silu);
      for (std::size_t c = 0; c < mixed.size(); ++c) mixed[c] *= gate[c];
      const std::vector<double> row = through(mixed, w[7], nullptr, same);
      for (Index c = 0; c < x.dim; ++c) out.at(b, 0, i, c) = row[static_cast<std::size_t>(c)];
    }
  }
  return out;
}

// Layer normalisation of a row, with gain and shift.
inline std::vector<double> normalised(std::vector<double> row, const Array& gain,
                                      const Array& shift) {
  const auto n = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (const double value : row) mean += value / n;
  for (const double value : row) variance += (value - mean) * (value - mean) / n;
  for (std::size_t c = 0; c < row.size(); ++c)
    row[c] =
        (row[c] - mean) / std::sqrt(variance + 1e-5) * gain.at(0, 0, 0, static_cast<Index>(c)) +
        shift.at(0, 0, 0, static_cast<Index>(c));
  return row;
}

// Liu et al. 2021, section 3: s = z1 ⊙ (W·norm(z2) + b), z = gelu(x·in). w: in, in_bias, gain,
// shift, spatial, spatial_bias [1, 1, max_len, 1], out, out_bias.
inline Array spatial_gating(const Array& x, const std::vector<Array>& w, bool causal,
                            const Valid& valid, const std::vector<Index>& wanted = {}) {
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  Array out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b) {
    const Index n = valid.of(x, b);
    std::vector<std::vector<double>> residual, normed;
    for (Index i = 0; i < n; ++i) {
      const std::vector<double> z = through(x.row(b, 0, i), w[0], &w[1], gelu);
      const auto middle = z.begin() + std::ssize(z) / 2;
      residual.emplace_back(z.begin(), middle);
      normed.push_back(normalised({middle, z.end()}, w[2], w[3]));
    }
    for (const Index i : rows) {
      if (i >= n) continue;
      std::vector<double> row = residual[static_cast<std::size_t>(i)];
      std::vector<double> gate(row.size(), w[5].at(0, 0, i, 0));
      for (Index j = 0; j < (causal ? i + 1 : n); ++j) {
        add_times(w[4].at(0, 0, i, j), normed[static_cast<std::size_t>(j)].data(), gate.data(),
                  static_cast<Index>(gate.size()));
      }
      for (std::size_t c = 0; c < row.size(); ++c) row[c] *= gate[c];
      const std::vector<double> mixed =
          through(row, w[6], &w[7], [](double value) { return value; });
      for (Index c = 0; c < x.dim; ++c) out.at(b, 0, i, c) = mixed[static_cast<std::size_t>(c)];
    }
  }
  return out;
}

}  // namespace oracle
