// Log-linear attention as a weight of each pair: double precision, nothing shared with the library.
#pragma once

#include "variants/reference/gated.h"

namespace oracle {

// The level at which position i reads position j <= i, from the paper's partition: i itself, then
// for each binary one of i, from the lowest, a block of that many positions before the last block.
inline Index level_of(Index i, Index j) {
  Index begin = i, level = 0;
  for (Index size = 1; j < begin; size *= 2) {
    ++level;
    if (i / size % 2 == 1) begin -= size;
  }
  return level;
}

// softplus(x), where padding is 0 whatever it holds.
inline Array level_weights(Array gates, const std::vector<Index>& lengths) {
  Array out = of_gates(gates, lengths, [](Index, double x) { return softplus(x); });
  for (Index b = 0; b < out.batch && !lengths.empty(); ++b)
    for (Index h = 0; h < out.heads; ++h)
      for (Index i = lengths[static_cast<std::size_t>(b)]; i < out.len; ++i)
        for (Index c = 0; c < out.dim; ++c) out.at(b, h, i, c) = softplus(0);
  return out;
}

// o_i = Σ_{j<=i} weights_i[level_of(i, j)]·exp(g_{j+1} + … + g_i)·(q_i·k_j)·strength_j·v_j, without
// j in the padding, whose g is 0.
inline Array level_attention(const Array& q, const Array& k, const Array& v, const Array& log_decay,
                             const Array& strength, const Array& weights,
                             const std::vector<Index>& lengths,
                             const std::vector<Index>& wanted = {}) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(wanted, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows) {
        double sum = 0;  // g_{j+1} + … + g_i
        for (Index j = i; j >= 0; --j) {
          if (lengths.empty() || j < lengths[static_cast<std::size_t>(b)]) {
            const double weight = weights.at(b, h, i, level_of(i, j)) * std::exp(sum) *
                                  dot(q.row(b, h, i), k.row(b, h, j)) * strength.at(b, h, j, 0);
            add_times(weight, v.line(b, h, j), out.line(b, h, i), v.dim);
          }
          sum += log_decay.at(b, h, j, 0);
        }
      }
  return out;
}

}  // namespace oracle
