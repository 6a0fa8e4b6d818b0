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
    add_times(row[c], w.line(0, 0, first + static_cast<Index>(c)), sums.data(), w.dim);
  }
  return sums;
}

// Waibel et al. 1989: O_i = b + Σ_k x_{i-before+k}·W_k; weight holds the W_k one below the other.
inline Array convolution(const Array& x, const Array& weight, const Array& bias, Index before,
                         const Valid& valid, const std::vector<Index>& wanted = {}) {
  const Index kernel = weight.len / x.dim;
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  Array out(x.batch, 1, x.len, weight.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (const Index i : rows) {
      if (i >= valid.of(x, b)) continue;
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
                            const Valid& valid, const std::vector<Index>& rows = {}) {
  Array hidden = convolution(x, h_b_u_c[0], h_b_u_c[1], before, valid, rows);
  for (double& value : hidden.x) value = std::tanh(value);
  return convolution(hidden, h_b_u_c[2], h_b_u_c[3], 0, valid, rows);
}

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct RecurrentState {
  std::vector<double> h, c;
};

// Σ of the products of x with `input` plus the bias, and of h with `state`, of every column.
struct GateSums {
  std::vector<double> input, state;
};
inline GateSums gate_sums(Row x, Row h, const std::vector<Array>& w) {
  GateSums sums{times(x, w[0]), times(h, w[2])};
  for (std::size_t j = 0; j < sums.input.size(); ++j) sums.input[j] += w[1].x[j];
  return sums;
}

// i f g o, as Gers et al. 2000, section 2
inline void lstm(RecurrentState& s, Row x, const std::vector<Array>& w) {
  const std::size_t n = s.h.size();
  const GateSums sums = gate_sums(x, s.h, w);
  for (std::size_t j = 0; j < n; ++j) {
    const auto gate = [&](std::size_t g) { return sums.input[g * n + j] + sums.state[g * n + j]; };
    double& c = s.c[j];
    c = logistic(gate(1)) * c + logistic(gate(0)) * std::tanh(gate(2));
    s.h[j] = logistic(gate(3)) * std::tanh(c);
  }
}

// r z n: Cho et al. 2014, eqs. 5-8. `after`: r times the product with the state and its bias (as
// cuDNN); else the product with r times the state (as in the paper).
inline void gru(RecurrentState& s, Row x, const std::vector<Array>& w, bool after) {
  const std::size_t n = s.h.size();
  const GateSums sums = gate_sums(x, s.h, w);
  std::vector<double> r, reset;
  for (std::size_t j = 0; j < n; ++j) {
    r.push_back(logistic(sums.input[j] + sums.state[j]));
    reset.push_back(r.back() * s.h[j]);
  }
  const std::vector<double> of_reset = after ? sums.state : times(reset, w[2]);
  for (std::size_t j = 0; j < n; ++j) {
    const double z = logistic(sums.input[n + j] + sums.state[n + j]), c = w[3].x[j];
    const double state = of_reset[2 * n + j];
    const double part = after ? r[j] * (state + c) : state + c;
    s.h[j] = (1 - z) * std::tanh(sums.input[2 * n + j] + part) + z * s.h[j];
  }
}

enum class CellKind { lstm, gru, gru_reset_before };

// w: input, bias, state and, of a GRU, the candidate's bias.
inline Array recurrent(const Array& x, const std::vector<Array>& w, CellKind cell, bool reverse,
                       const Valid& valid) {
  const Index dim = w[2].len;
  Array out(x.batch, 1, x.len, dim);
  for (Index b = 0; b < x.batch; ++b) {
    RecurrentState s{std::vector<double>(static_cast<std::size_t>(dim), 0.0),
                     std::vector<double>(static_cast<std::size_t>(dim), 0.0)};
    for (Index step = 0; step < x.len; ++step) {
      const Index i = reverse ? x.len - 1 - step : step;
      if (i < valid.of(x, b) && cell == CellKind::lstm) lstm(s, x.row(b, 0, i), w);
      if (i < valid.of(x, b) && cell != CellKind::lstm)
        gru(s, x.row(b, 0, i), w, cell == CellKind::gru);
      std::copy(s.h.begin(), s.h.end(), out.line(b, 0, i));
    }
  }
  return out;
}

inline Array mean(const Array& x, bool causal, const Valid& valid,
                  const std::vector<Index>& wanted = {}) {
  Array out(x.batch, 1, x.len, x.dim);
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  for (Index b = 0; b < x.batch; ++b)
    for (const Index i : rows) {
      const Index count = std::min(valid.of(x, b), causal ? i + 1 : x.len);
      for (Index j = 0; j < count; ++j)
        add_times(1 / static_cast<double>(count), x.line(b, 0, j), out.line(b, 0, i), x.dim);
    }
  return out;
}

}  // namespace oracle
