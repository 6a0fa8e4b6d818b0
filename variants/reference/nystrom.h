// Attention through landmarks, the slow, obvious way: in double, one sum after the other. Xiong et
// al. 2021, arXiv:2102.03902.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

using Square = std::vector<std::vector<double>>;

inline Square times(const Square& a, const Square& b) {
  Square c(a.size(), std::vector<double>(b.empty() ? 0 : b[0].size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[k].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

// Eq. 11: `steps` iterations from the transpose over the largest sum of a column and of a row.
inline Square iterated_inverse(const Square& a, Index steps) {
  const std::size_t m = a.size();
  double columns = 0, rows = 0;
  for (std::size_t i = 0; i < m; ++i) {
    double column = 0, row = 0;
    for (std::size_t j = 0; j < m; ++j) column += std::abs(a[j][i]), row += std::abs(a[i][j]);
    columns = std::max(columns, column), rows = std::max(rows, row);
  }
  Square z = a;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j) z[i][j] = a[j][i] / (columns * rows);
  const auto from = [m](double diagonal, Square x) {
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j) x[i][j] = (i == j ? diagonal : 0) - x[i][j];
    return x;
  };
  for (Index t = 0; t < steps; ++t) {
    const Square az = times(a, z);
    z = times(z, from(13, times(az, from(15, times(az, from(7, az))))));
    for (auto& row : z)
      for (double& value : row) value /= 4;
  }
  return z;
}

// x with a·x = b, by elimination with the largest pivot of each column; what a column without one
// would leave open is 0.
inline Square solution(Square a, Square b) {
  constexpr double kNoPivot = 1e-13;
  const std::size_t m = a.size();
  for (std::size_t k = 0; k < m; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < m; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]), std::swap(b[k], b[pivot]);
    if (std::abs(a[k][k]) <= kNoPivot) continue;
    for (std::size_t i = k + 1; i < m; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < m; ++j) a[i][j] -= factor * a[k][j];
      for (std::size_t j = 0; j < b[i].size(); ++j) b[i][j] -= factor * b[k][j];
    }
  }
  for (std::size_t k = m; k-- > 0;)
    for (std::size_t j = 0; j < b[k].size(); ++j) {
      for (std::size_t i = k + 1; i < m; ++i) b[k][j] -= a[k][i] * b[i][j];
      b[k][j] = std::abs(a[k][k]) <= kNoPivot ? 0 : b[k][j] / a[k][k];
    }
  return b;
}

struct Nystrom {
  Index landmarks;
  Index steps;          // of the iteration; 0: the exact inverse
  const Array* filter;  // [1, 1, heads, kernel]; null: none
};

inline Array nystrom(const Array& q, const Array& k, const Array& v, const Nystrom& how,
                     const std::vector<Index>& lengths, const std::vector<Index>& rows_of_q = {}) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> wanted = wanted_rows(rows_of_q, q.len);
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  const auto weights = [&](const Square& a, const Square& b) {
    Square w(a.size(), std::vector<double>(b.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      double top = -INFINITY, total = 0;
      for (std::size_t j = 0; j < b.size(); ++j)
        top = std::max(top, w[i][j] = tau * dot(a[i], b[j]));
      for (double& x : w[i]) total += x = std::exp(x - top);
      for (double& x : w[i]) x /= total;
    }
    return w;
  };
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index n = lengths.empty() ? k.len : lengths[static_cast<std::size_t>(b)],
                  m = std::min(how.landmarks, n);
      if (n == 0) continue;
      const auto rows = [&](const Array& x, Index count) {
        Square all;
        for (Index i = 0; i < count; ++i)
          all.emplace_back(x.row(b, h, i).begin(), x.row(b, h, i).end());
        return all;
      };
      const auto means = [&](const Array& x) {
        Square all(static_cast<std::size_t>(m),
                   std::vector<double>(static_cast<std::size_t>(x.dim)));
        for (Index s = 0; s < m; ++s)
          for (Index i = s * n / m; i < (s + 1) * n / m; ++i)
            for (Index c = 0; c < x.dim; ++c)
              all[static_cast<std::size_t>(s)][static_cast<std::size_t>(c)] +=
                  x.at(b, h, i, c) / static_cast<double>((s + 1) * n / m - s * n / m);
        return all;
      };
      const Square of_q = means(q), of_k = means(k), between = weights(of_q, of_k),
                   read = times(weights(of_q, rows(k, n)), rows(v, n));
      const Square held = how.steps > 0 ? times(iterated_inverse(between, how.steps), read)
                                        : solution(between, read);
      Square queries;
      for (const Index i : wanted)
        queries.emplace_back(q.row(b, h, i).begin(), q.row(b, h, i).end());
      const Square result = times(weights(queries, of_k), held);
      for (std::size_t at = 0; at < wanted.size(); ++at)
        for (Index c = 0; c < v.dim; ++c) {
          const Index i = wanted[at];
          out.at(b, h, i, c) = result[at][static_cast<std::size_t>(c)];
          for (Index t = 0; how.filter && i < n && t < how.filter->dim; ++t)
            if (const Index j = i - how.filter->dim / 2 + t; j >= 0 && j < n)
              out.at(b, h, i, c) += how.filter->at(0, 0, h, t) * v.at(b, h, j, c);
        }
    }
  return out;
}

}  // namespace oracle
