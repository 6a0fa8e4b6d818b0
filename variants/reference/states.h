// A state of keys times values that decays, is written to and is read, one step after the other, in
// double: retention, gated linear attention, state spaces, delta rules. O(n·m·d) for each head.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

// What is not given is 1 for decays, absent otherwise.
struct StateGates {
  std::function<double(Index b, Index h, Index t, Index c)> log_decay = {};  // of channel c of k
  std::function<double(Index b, Index h, Index t)> beta = {};                // the delta rule
  std::function<double(Index h, Index c)> bonus = {};  // outputs read the state before the write
  // The removal: what e reads before the decay is taken from b after it.
  std::function<double(Index b, Index h, Index t, Index c)> erase = {}, remove = {};
};

// S = diag(a_t)·S; the delta rule: w = β_t·(v_t - k_t·S), else w = v_t; S += k_tᵀ·w; o_t = q_t·S.
// The removal: S = diag(a_t)·S - b_tᵀ·(e_t·S) before the write. With a bonus u: o_t = q_t·(S before
// the step + diag(u)·k_tᵀ·v_t). A position at or beyond the length leaves the state alone, and its
// query reads it.
inline Array state_outputs(const Array& q, const Array& k, const Array& v, const StateGates& gates,
                           const std::vector<Index>& lengths = {},
                           const std::vector<Index>& rows = {}) {
  const Index m = k.dim, d = v.dim;
  Array out(q.batch, q.heads, q.len, d);
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Array state(1, 1, m, d);
      const Index length = lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
      for (Index t = 0; t < q.len; ++t) {
        const bool is_wanted = wanted[static_cast<std::size_t>(t)];
        const auto read = [&] {
          for (Index c = 0; is_wanted && c < m; ++c)
            add_times(q.at(b, h, t, c), state.line(0, 0, c), out.line(b, h, t), d);
        };
        if (t >= length) {
          read();
          continue;
        }
        if (gates.bonus) {
          read();
          for (Index c = 0; is_wanted && c < m; ++c)
            add_times(q.at(b, h, t, c) * gates.bonus(h, c) * k.at(b, h, t, c), v.line(b, h, t),
                      out.line(b, h, t), d);
        }
        std::vector<double> erased(static_cast<std::size_t>(d)), held = erased, written;
        for (Index c = 0; gates.erase && c < m; ++c)
          add_times(gates.erase(b, h, t, c), state.line(0, 0, c), erased.data(), d);
        for (Index c = 0; gates.log_decay && c < m; ++c) {
          const double kept = std::exp(gates.log_decay(b, h, t, c));
          double* const line = state.line(0, 0, c);
          for (Index e = 0; e < d; ++e) line[e] *= kept;
        }
        for (Index c = 0; gates.remove && c < m; ++c)
          add_times(-gates.remove(b, h, t, c), erased.data(), state.line(0, 0, c), d);
        for (Index c = 0; gates.beta && c < m; ++c)
          add_times(k.at(b, h, t, c), state.line(0, 0, c), held.data(), d);
        for (Index e = 0; e < d; ++e) {
          const double value = v.at(b, h, t, e);
          written.push_back(gates.beta
                                ? gates.beta(b, h, t) * (value - held[static_cast<std::size_t>(e)])
                                : value);
        }
        for (Index c = 0; c < m; ++c)
          add_times(k.at(b, h, t, c), written.data(), state.line(0, 0, c), d);
        if (!gates.bonus) read();
      }
    }
  return out;
}

// The pair (2c, 2c + 1) of position i turned by the angle i·10000^(-c/(pairs - 1)).
inline Array rotated_by_position(const Array& x) {
  Array out = x;
  const Index pairs = x.dim / 2;
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c < pairs; ++c) {
          const double share =
              pairs > 1 ? static_cast<double>(c) / static_cast<double>(pairs - 1) : 0;
          const double angle = static_cast<double>(i) / std::pow(10000.0, share);
          const double u = x.at(b, h, i, 2 * c), w = x.at(b, h, i, 2 * c + 1);
          out.at(b, h, i, 2 * c) = u * std::cos(angle) - w * std::sin(angle);
          out.at(b, h, i, 2 * c + 1) = u * std::sin(angle) + w * std::cos(angle);
        }
  return out;
}

}  // namespace oracle
