// Linear attention with a decaying state, as a weight of each pair: double precision, nothing
// shared with the library.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

// log(1 + e^x)
inline double softplus(double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

// f(h, x) of each number x of head h; 0 in the padding, whatever it holds.
inline Array of_gates(const Array& gates, const std::vector<Index>& lengths,
                      const std::function<double(Index h, double x)>& f) {
  Array out(gates.batch, gates.heads, gates.len, gates.dim);
  for (Index b = 0; b < gates.batch; ++b)
    for (Index h = 0; h < gates.heads; ++h)
      for (Index i = 0; i < gates.len; ++i)
        for (Index c = 0; c < gates.dim; ++c)
          if (lengths.empty() || i < lengths[static_cast<std::size_t>(b)])
            out.at(b, h, i, c) = f(h, gates.at(b, h, i, c));
  return out;
}

// o_i = Σ_{j<=i} Σ_c τ·q_ic·k_jc·exp(g_{j+1,c} + … + g_{i,c})·strength_j·v_j; log_decay g [batch,
// heads, len, dim or 1], strength [batch, heads, len, 1], or no numbers for 1. Both are 0 in the
// padding.
inline Array decayed_attention(const Array& q, const Array& k, const Array& v,
                               const Array& log_decay, const Array& strength, double tau,
                               const std::vector<Index>& lengths) {
  Array sums = log_decay;  // g_0 + … + g_i
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 1; i < q.len; ++i)
        for (Index c = 0; c < sums.dim; ++c) sums.at(b, h, i, c) += sums.at(b, h, i - 1, c);
  const Visibility seen{.causal = true, .lengths = lengths};
  return weighted_sum(q, v, seen, [&](Index b, Index h, Index i, Index j) {
    double total = 0;
    for (Index c = 0; c < q.dim; ++c) {
      const Index channel = sums.dim == 1 ? 0 : c;
      total += q.at(b, h, i, c) * k.at(b, h, j, c) *
               std::exp(sums.at(b, h, i, channel) - sums.at(b, h, j, channel));
    }
    return tau * total * (strength.x.empty() ? 1 : strength.at(b, h, j, 0));
  });
}

}  // namespace oracle
