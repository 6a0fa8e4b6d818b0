// Softmax weights cut to a rank, the slow, obvious way: one-sided Jacobi rotations in double
// (Hestenes 1958), O(n³) a sweep.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

// Rotates pairs of rows of `a` until all are orthogonal, and applies the same to `turned`: a is
// then the rows σ·(right singular vector), `turned` the left singular vectors.
inline void orthogonalise(std::vector<std::vector<double>>& a,
                          std::vector<std::vector<double>>& turned) {
  const std::size_t n = a.size();
  bool moved = true;
  for (int sweep = 0; moved && sweep < 40; ++sweep) {
    moved = false;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double pp = dot(a[p], a[p]), qq = dot(a[q], a[q]), pq = dot(a[p], a[q]);
        if (std::abs(pq) <= 1e-14 * std::sqrt(pp * qq) || std::abs(pq) < 1e-290) continue;
        moved = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (auto* rows : {&a, &turned})
          for (std::size_t i = 0; i < (*rows)[p].size(); ++i) {
            const double x = (*rows)[p][i], y = (*rows)[q][i];
            (*rows)[p][i] = c * x - s * y;
            (*rows)[q][i] = s * x + c * y;
          }
      }
  }
}

inline Array truncated_weights(const Array& q, const Array& k, const Array& v, Index rank,
                               const std::vector<Index>& lengths) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index n = lengths.empty() ? k.len : lengths[static_cast<std::size_t>(b)];
      const auto size = static_cast<std::size_t>(n);
      std::vector<std::vector<double>> a(size, std::vector<double>(size)), turned = a;
      for (Index i = 0; i < n; ++i) {
        std::vector<double>& row = a[static_cast<std::size_t>(i)];
        double top = -INFINITY, total = 0;
        for (Index j = 0; j < n; ++j)
          top = std::fmax(
              top, row[static_cast<std::size_t>(j)] = tau * dot(q.row(b, h, i), k.row(b, h, j)));
        for (double& x : row) total += x = std::exp(x - top);
        for (double& x : row) x /= total;
        turned[static_cast<std::size_t>(i)][static_cast<std::size_t>(i)] = 1;
      }
      std::vector<std::size_t> order(size);
      std::iota(order.begin(), order.end(), std::size_t{0});
      if (rank < n) {
        orthogonalise(a, turned);
        std::vector<double> squares;
        for (const auto& row : a) squares.push_back(dot(row, row));
        std::sort(order.begin(), order.end(),
                  [&](std::size_t x, std::size_t y) { return squares[x] > squares[y]; });
      }
      for (Index r = 0; r < std::min(rank, n); ++r) {  // Σ_r left_r·(a_r·v)
        const std::size_t at = order[static_cast<std::size_t>(r)];
        for (Index c = 0; c < v.dim; ++c) {
          double read = 0;
          for (Index j = 0; j < n; ++j)
            read += a[at][static_cast<std::size_t>(j)] * v.at(b, h, j, c);
          for (Index i = 0; i < n; ++i)
            out.at(b, h, i, c) += turned[at][static_cast<std::size_t>(i)] * read;
        }
      }
    }
  return out;
}

}  // namespace oracle
