// Attention without queries times keys, one channel and one pair after the other, in double: σ(q_t)
// ⊙ Σ_j e^(k_j + w_tj)⊙v_j / Σ_j e^(k_j + w_tj). Zhai et al. 2021, arXiv:2105.14103, eqs. 2-4.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "variants/reference/attention.h"

namespace oracle {

// w_tj of head h.
using PairBias = std::function<double(Index h, Index t, Index j)>;

// w: left and right [1, 1, max_len, rank], w_tj = left_t·right_j for |t - j| < window, else 0; no
// weights: 0.
inline PairBias bias_of_factors(const std::vector<Array>& w, Index window) {
  return [&w, window](Index, Index t, Index j) {
    return w.empty() || std::abs(t - j) >= window ? 0 : dot(w[0].row(0, 0, t), w[1].row(0, 0, j));
  };
}
// w [1, 1, heads, window], causal the biases of t - j = 0 .. window - 1, else 2·window - 1 of them,
// from 1 - window on; 0 beyond.
inline PairBias bias_of_distance(const Array& w, bool causal) {
  return [&w, causal](Index h, Index t, Index j) {
    const Index i = t - j + (causal ? 0 : w.dim / 2);
    return i < 0 || i >= w.dim ? 0 : w.at(0, 0, h, i);
  };
}

// Exponentials of keys are taken over the largest of their channel in the sequence, and over the
// largest that a query sees by one factor more: e^(k - top) = e^(k - most)·e^(most - top).
inline Array attention_free(const Array& q, const Array& k, const Array& v, const PairBias& w,
                            const Visibility& m) {
  const auto size = static_cast<std::size_t>(q.dim);
  const std::vector<Index> rows = wanted_rows(m.rows, q.len);
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? k.len : m.lengths[static_cast<std::size_t>(b)];
      std::vector<double> most(size, -INFINITY);
      for (Index j = 0; j < valid; ++j)
        for (std::size_t c = 0; c < size; ++c) most[c] = std::max(most[c], k.row(b, h, j)[c]);
      Array powers(1, 1, valid, q.dim);
      for (Index j = 0; j < valid; ++j)
        for (std::size_t c = 0; c < size; ++c)
          powers.line(0, 0, j)[c] = std::exp(k.row(b, h, j)[c] - most[c]);
      for (const Index t : rows) {
        std::vector<std::pair<Index, double>> seen;  // with their biases
        for (Index j = 0; j < k.len; ++j)
          if (sees(m, b, t, j, q.len, k.len)) seen.emplace_back(j, w(h, t, j));
        std::vector<double> top(size, -INFINITY), sum(size), total(size);  // of each channel
        for (const auto& [j, bias] : seen) {
          const Row keys = k.row(b, h, j);
          for (std::size_t c = 0; c < size; ++c) top[c] = std::max(top[c], keys[c] + bias);
        }
        std::vector<double> unbiased(size);
        for (std::size_t c = 0; c < size; ++c) unbiased[c] = std::exp(most[c] - top[c]);
        for (const auto& [j, bias] : seen) {
          std::vector<double> factor = unbiased;
          for (std::size_t c = 0; bias != 0 && c < size; ++c)
            factor[c] = std::exp(most[c] - top[c] + bias);
          const double* const power = powers.line(0, 0, j);
          const double* const values = v.line(b, h, j);
          for (std::size_t c = 0; c < size; ++c) {
            const double weight = power[c] * factor[c];
            sum[c] += weight * values[c], total[c] += weight;
          }
        }
        for (Index c = 0; c < q.dim && !seen.empty(); ++c) {
          const auto at = static_cast<std::size_t>(c);
          out.at(b, h, t, c) = sum[at] / total[at] / (1 + std::exp(-q.at(b, h, t, c)));
        }
      }
    }
  return out;
}

}  // namespace oracle
