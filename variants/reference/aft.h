// Attention without queries times keys, one channel and one pair after the other, in double: σ(q_t)
// ⊙ Σ_j e^(k_j + w_tj)⊙v_j / Σ_j e^(k_j + w_tj). Zhai et al. 2021, arXiv:2105.14103, eqs. 2-4.
#pragma once

#include <algorithm>
#include <cmath>

#include "variants/reference/attention.h"

namespace oracle {

// w: left and right [1, 1, max_len, rank], w_tj = left_t·right_j for |t - j| < window, else 0; no
// weights: 0.
inline Array attention_free(const Array& q, const Array& k, const Array& v,
                            const std::vector<Array>& w, Index window, const Visibility& m) {
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index t = 0; t < q.len; ++t) {
      std::vector<std::pair<Index, double>> seen;  // with their biases
      for (Index j = 0; j < k.len; ++j)
        if (sees(m, b, t, j, q.len, k.len))
          seen.emplace_back(j, w.empty() || std::abs(t - j) >= window
                                   ? 0
                                   : dot(w[0].row(0, 0, t), w[1].row(0, 0, j)));
      for (Index h = 0; h < q.heads && !seen.empty(); ++h)
        for (Index c = 0; c < q.dim; ++c) {
          double top = -INFINITY, sum = 0, total = 0;
          for (const auto& [j, bias] : seen) top = std::max(top, k.at(b, h, j, c) + bias);
          for (const auto& [j, bias] : seen) {
            const double weight = std::exp(k.at(b, h, j, c) + bias - top);
            sum += weight * v.at(b, h, j, c), total += weight;
          }
          out.at(b, h, t, c) = sum / total / (1 + std::exp(-q.at(b, h, t, c)));
        }
    }
  return out;
}

}  // namespace oracle
