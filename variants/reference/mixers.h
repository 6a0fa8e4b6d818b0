// Mixers the slow, obvious way: double precision, written from their equations, nothing shared with
// the library. Rows are Array [batch, 1, len, width], weights [1, 1, rows, columns].
#pragma once

#include <algorithm>

#include "variants/reference/attention.h"

namespace oracle {

// [batch, heads, len, dim] to the rows of a layer, [batch, 1, len, heads · dim].
inline Array merged(const Array& x) {
  Array rows(x.batch, 1, x.len, x.heads * x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c < x.dim; ++c) rows.at(b, 0, i, h * x.dim + c) = x.at(b, h, i, c);
  return rows;
}
inline Array split(const Array& rows, Index heads) {
  Array x(rows.batch, heads, rows.len, rows.dim / heads);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c < x.dim; ++c) x.at(b, h, i, c) = rows.at(b, 0, i, h * x.dim + c);
  return x;
}
// Columns of a, then columns of b.
inline Array beside(const Array& a, const Array& b) {
  Array both(a.batch, 1, a.len, a.dim + b.dim);
  for (Index i = 0; i < a.batch; ++i)
    for (Index t = 0; t < a.len; ++t)
      for (Index c = 0; c < both.dim; ++c)
        both.at(i, 0, t, c) = c < a.dim ? a.at(i, 0, t, c) : b.at(i, 0, t, c - a.dim);
  return both;
}

struct Valid {  // rows of each batch entry; empty: all
  std::vector<Index> lengths = {};
  Index of(const Array& x, Index b) const {
    return lengths.empty() ? x.len : lengths[static_cast<std::size_t>(b)];
  }
};

// Σ_c row_c · w(first + c, j) of every column j, row after row of w, as they lie in memory.
inline std::vector<double> times(Row row, const Array& w, Index first = 0) {
  std::vector<double> sums(static_cast<std::size_t>(w.dim));
  for (std::size_t c = 0; c < row.size(); ++c) {
    const Row of = w.row(0, 0, first + static_cast<Index>(c));
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += row[c] * of[j];
  }
  return sums;
}

// Waibel et al. 1989: O_i = b + Σ_k x_{i-before+k}·W_k; weight holds the W_k one below the other.
inline Array convolution(const Array& x, const Array& weight, const Array& bias, Index before,
                         const Valid& valid) {
  const Index kernel = weight.len / x.dim;
  Array out(x.batch, 1, x.len, weight.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index i = 0; i < valid.of(x, b); ++i) {
      for (Index j = 0; j < weight.dim; ++j) out.at(b, 0, i, j) = bias.at(0, 0, 0, j);
      for (Index k = 0; k < kernel; ++k) {
        const Index at = i - before + k;
        if (at < 0 || at >= valid.of(x, b)) continue;
        const std::vector<double> sums = times(x.row(b, 0, at), weight, k * x.dim);
        for (Index j = 0; j < weight.dim; ++j)
          out.at(b, 0, i, j) += sums[static_cast<std::size_t>(j)];
      }
    }
  return out;
}

// Bengio et al. 2003, eq. 1: c + U·tanh(b + H·window)
inline Array window_network(const Array& x, const std::vector<Array>& h_b_u_c, Index before,
                            const Valid& valid) {
  Array hidden = convolution(x, h_b_u_c[0], h_b_u_c[1], before, valid);
  for (double& value : hidden.x) value = std::tanh(value);
  return convolution(hidden, h_b_u_c[2], h_b_u_c[3], 0, valid);
}

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct RecurrentState {
  std::vector<double> h, c;
};

// Weights are given to lstm() and gru() with the columns of a product as rows.
inline Array transposed(const Array& a) {
  Array result(1, 1, a.dim, a.len);
  for (Index i = 0; i < a.len; ++i)
    for (Index j = 0; j < a.dim; ++j) result.at(0, 0, j, i) = a.at(0, 0, i, j);
  return result;
}

// i f g o, as Gers et al. 2000, section 2
inline void lstm(RecurrentState& s, Row x, const std::vector<Array>& w) {
  const std::vector<double> h = s.h;
  const Index n = static_cast<Index>(h.size());
  for (Index j = 0; j < n; ++j) {
    const auto gate = [&](Index g) {
      return dot(x, w[0].row(0, 0, g * n + j)) + w[1].at(0, 0, 0, g * n + j) +
             dot(h, w[2].row(0, 0, g * n + j));
    };
    double& c = s.c[static_cast<std::size_t>(j)];
    c = logistic(gate(1)) * c + logistic(gate(0)) * std::tanh(gate(2));
    s.h[static_cast<std::size_t>(j)] = logistic(gate(3)) * std::tanh(c);
  }
}

// r z n: Cho et al. 2014, eqs. 5-8. `after`: r times the product with the state and its bias (as
// cuDNN); else the product with r times the state (as in the paper).
inline void gru(RecurrentState& s, Row x, const std::vector<Array>& w, bool after) {
  const std::vector<double> h = s.h;
  const Index n = static_cast<Index>(h.size());
  const auto input = [&](Index g, Index j) {
    return dot(x, w[0].row(0, 0, g * n + j)) + w[1].at(0, 0, 0, g * n + j);
  };
  std::vector<double> r, reset;
  for (Index j = 0; j < n; ++j) {
    r.push_back(logistic(input(0, j) + dot(h, w[2].row(0, 0, j))));
    reset.push_back(r.back() * h[static_cast<std::size_t>(j)]);
  }
  for (Index j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double z = logistic(input(1, j) + dot(h, w[2].row(0, 0, n + j))), c = w[3].at(0, 0, 0, j);
    const double part = after ? r[at] * (dot(h, w[2].row(0, 0, 2 * n + j)) + c)
                              : dot(reset, w[2].row(0, 0, 2 * n + j)) + c;
    s.h[at] = (1 - z) * std::tanh(input(2, j) + part) + z * h[at];
  }
}

enum class CellKind { lstm, gru, gru_reset_before };

// w: input, bias, state and, of a GRU, the candidate's bias.
inline Array recurrent(const Array& x, const std::vector<Array>& weights, CellKind cell,
                       bool reverse, const Valid& valid) {
  std::vector<Array> w = weights;
  w[0] = transposed(weights[0]), w[2] = transposed(weights[2]);
  const Index dim = weights[2].len;
  Array out(x.batch, 1, x.len, dim);
  for (Index b = 0; b < x.batch; ++b) {
    RecurrentState s{std::vector<double>(static_cast<std::size_t>(dim), 0.0),
                     std::vector<double>(static_cast<std::size_t>(dim), 0.0)};
    for (Index step = 0; step < x.len; ++step) {
      const Index i = reverse ? x.len - 1 - step : step;
      if (i < valid.of(x, b) && cell == CellKind::lstm) lstm(s, x.row(b, 0, i), w);
      if (i < valid.of(x, b) && cell != CellKind::lstm)
        gru(s, x.row(b, 0, i), w, cell == CellKind::gru);
      for (Index j = 0; j < dim; ++j) out.at(b, 0, i, j) = s.h[static_cast<std::size_t>(j)];
    }
  }
  return out;
}

inline Array mean(const Array& x, bool causal, const Valid& valid) {
  Array out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index i = 0; i < x.len; ++i) {
      const Index count = std::min(valid.of(x, b), causal ? i + 1 : x.len);
      for (Index c = 0; c < x.dim; ++c)
        for (Index j = 0; j < count; ++j)
          out.at(b, 0, i, c) += x.at(b, 0, j, c) / static_cast<double>(count);
    }
  return out;
}

}  // namespace oracle
