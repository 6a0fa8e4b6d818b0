// Softmax weights cut to a rank, the slow, obvious way: one-sided Jacobi rotations in double
// (Hestenes 1958), O(n³) a sweep.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

// Rotates pairs of rows of `a` until all are orthogonal: they are then σ·(right singular vector).
// Gives the σ².
inline std::vector<double> orthogonalise(std::vector<std::vector<double>>& a) {
  const std::size_t n = a.size();
  std::vector<double> squares(n);
  bool moved = true;
  for (int sweep = 0; moved && sweep < 40; ++sweep) {
    moved = false;
    for (std::size_t p = 0; p < n; ++p) squares[p] = dot(a[p], a[p]);
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double pp = squares[p], qq = squares[q], pq = dot(a[p], a[q]);
        if (std::abs(pq) <= 1e-14 * std::sqrt(pp * qq) || std::abs(pq) < 1e-290) continue;
        moved = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        double *const x = a[p].data(), *const y = a[q].data();
        for (std::size_t i = 0; i < n; ++i) {
          const double old = x[i];
          x[i] = c * old - s * y[i];
          y[i] = s * old + c * y[i];
        }
        for (const std::size_t at : {p, q}) {
          const double old = squares[at];
          squares[at] += (at == p ? -t : t) * pq;
          // A difference of nearly equal numbers is no square.
          if (squares[at] < 0.1 * old) squares[at] = dot(a[at], a[at]);
        }
      }
  }
  return squares;
}

// The weights of all positions of a head for each other.
inline std::vector<std::vector<double>> softmax_weights(const Array& q, const Array& k, Index b,
                                                        Index h, Index n) {
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  std::vector<std::vector<double>> weights;
  for (Index i = 0; i < n; ++i) {
    std::vector<double> row;
    double top = -INFINITY, total = 0;
    for (Index j = 0; j < n; ++j) {
      row.push_back(tau * dot(q.row(b, h, i), k.row(b, h, j)));
      top = std::fmax(top, row.back());
    }
    for (double& x : row) total += x = std::exp(x - top);
    for (double& x : row) x /= total;
    weights.push_back(row);
  }
  return weights;
}

inline Array truncated_weights(const Array& q, const Array& k, const Array& v, Index rank,
                               const std::vector<Index>& lengths) {
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index n = lengths.empty() ? k.len : lengths[static_cast<std::size_t>(b)];
      const std::vector<std::vector<double>> weights = softmax_weights(q, k, b, h, n);
      if (rank >= n) {
        for (Index i = 0; i < n; ++i)
          for (Index j = 0; j < n; ++j)
            for (Index c = 0; c < v.dim; ++c)
              out.at(b, h, i, c) +=
                  weights[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] *
                  v.at(b, h, j, c);
        continue;
      }
      std::vector<std::vector<double>> a = weights;
      const std::vector<double> squares = orthogonalise(a);
      std::vector<std::size_t> order(squares.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::sort(order.begin(), order.end(),
                [&](std::size_t x, std::size_t y) { return squares[x] > squares[y]; });
      // weights·Σ_r right_r·(right_r·v), right_r = a_r/σ_r
      for (Index r = 0; r < rank; ++r) {
        const std::size_t at = order[static_cast<std::size_t>(r)];
        // Below, a row is rounding, and its direction chance; what it adds is at most its σ.
        if (!(squares[at] > 1e-24 * squares[order.front()])) break;
        Array read(1, 1, 1, v.dim);
        for (Index j = 0; j < n; ++j)
          for (Index c = 0; c < v.dim; ++c)
            read.at(0, 0, 0, c) += a[at][static_cast<std::size_t>(j)] * v.at(b, h, j, c);
        for (Index i = 0; i < n; ++i) {
          const double left = dot(weights[static_cast<std::size_t>(i)], a[at]) / squares[at];
          for (Index c = 0; c < v.dim; ++c) out.at(b, h, i, c) += left * read.at(0, 0, 0, c);
        }
      }
    }
  return out;
}

}  // namespace oracle
