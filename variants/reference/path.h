// Softmax attention with a product of reflections between key and query, one map after the other:
// double precision, nothing shared with the library.
#pragma once

#include "variants/reference/gated.h"

namespace oracle {

// logit_ij = q_i·H_i·…·H_{j+1}·k_jᵀ/√d for j <= i, H_s = I - strength_s·w_sᵀ·w_s; H = I in the
// padding. w [batch, heads, len, dim], strength [batch, heads, len, 1].
inline Array path_attention(const Array& q, const Array& k, const Array& v, const Array& w,
                            const Array& strength, const std::vector<Index>& lengths,
                            const std::vector<Index>& wanted = {}) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(wanted, q.len);
  for (Index b = 0; b < q.batch; ++b) {
    const Index valid = lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows) {
        const Row given = q.row(b, h, i);
        std::vector<double> query(given.begin(), given.end());
        std::vector<double> logits(static_cast<std::size_t>(i + 1), -INFINITY);
        double top = -INFINITY, total = 0;
        for (Index j = i; j >= 0; --j) {
          if (j >= valid) continue;
          double& logit = logits[static_cast<std::size_t>(j)];
          logit = dot(query, k.row(b, h, j)) / std::sqrt(static_cast<double>(q.dim));
          top = std::fmax(top, logit);
          const double along = strength.at(b, h, j, 0) * dot(query, w.row(b, h, j));
          add_times(-along, w.line(b, h, j), query.data(), q.dim);
        }
        for (const double logit : logits) total += std::exp(logit - top);
        for (Index j = 0; j < std::min(i + 1, valid); ++j)
          add_times(std::exp(logits[static_cast<std::size_t>(j)] - top) / total, v.line(b, h, j),
                    out.line(b, h, i), v.dim);
      }
  }
  return out;
}

}  // namespace oracle
