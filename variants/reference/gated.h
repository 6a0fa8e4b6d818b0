// Linear attention with a decaying state, as a weight of each pair, and the delta rule, one step
// after the other: double precision, nothing shared with the library.
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
                               const std::vector<Index>& lengths,
                               const std::vector<Index>& wanted = {}) {
  Array decays = log_decay;
  for (double& g : decays.x) g = std::exp(g);
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(wanted, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows) {
        std::vector<double> left(static_cast<std::size_t>(q.dim));  // of what position j wrote
        for (Index c = 0; c < q.dim; ++c)
          left[static_cast<std::size_t>(c)] = tau * q.at(b, h, i, c);
        for (Index j = i; j >= 0; --j) {
          double weight = 0;
          const bool is_read = lengths.empty() || j < lengths[static_cast<std::size_t>(b)];
          if (is_read) weight = dot(left, k.row(b, h, j));
          if (!strength.x.empty()) weight *= strength.at(b, h, j, 0);
          if (is_read) add_times(weight, v.line(b, h, j), out.line(b, h, i), v.dim);
          const double* const decay = decays.line(b, h, j);
          for (Index c = 0; c < q.dim; ++c)
            left[static_cast<std::size_t>(c)] *= decay[decays.dim == 1 ? 0 : c];
        }
      }
  return out;
}

// x/√(|x|² + epsilon) of each row.
inline Array unit_rows(Array x, double epsilon) {
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i) {
        double square = epsilon;
        for (Index c = 0; c < x.dim; ++c) square += x.at(b, h, i, c) * x.at(b, h, i, c);
        for (Index c = 0; c < x.dim; ++c) x.at(b, h, i, c) /= std::sqrt(square);
      }
  return x;
}

// S̄ = diag(e^g_t)·S_{t-1}, S_t = S̄ + β_t·k_tᵀ·(v_t - k_t·S̄), o_t = τ·q_t·S_t; log_decay g [batch,
// heads, len, dim or 1], or no numbers for 0; strength β [batch, heads, len, 1].
inline Array delta_attention(const Array& q, const Array& k, const Array& v, const Array& log_decay,
                             const Array& strength, double tau, const std::vector<Index>& lengths,
                             const std::vector<Index>& rows = {}) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Array state(1, 1, q.dim, v.dim);
      for (Index t = 0; t < q.len; ++t) {
        const bool is_read = lengths.empty() || t < lengths[static_cast<std::size_t>(b)];
        for (Index c = 0; is_read && !log_decay.x.empty() && c < q.dim; ++c) {
          const double kept = std::exp(log_decay.at(b, h, t, log_decay.dim == 1 ? 0 : c));
          double* const line = state.line(0, 0, c);
          for (Index j = 0; j < v.dim; ++j) line[j] *= kept;
        }
        if (is_read) {
          std::vector<double> stored(static_cast<std::size_t>(v.dim)), written;  // k_t·S̄
          for (Index c = 0; c < q.dim; ++c)
            add_times(k.at(b, h, t, c), state.line(0, 0, c), stored.data(), v.dim);
          for (Index j = 0; j < v.dim; ++j)
            written.push_back(strength.at(b, h, t, 0) *
                              (v.at(b, h, t, j) - stored[static_cast<std::size_t>(j)]));
          for (Index c = 0; c < q.dim; ++c)
            add_times(k.at(b, h, t, c), written.data(), state.line(0, 0, c), v.dim);
        }
        for (Index c = 0; wanted[static_cast<std::size_t>(t)] && c < q.dim; ++c)
          add_times(tau * q.at(b, h, t, c), state.line(0, 0, c), out.line(b, h, t), v.dim);
      }
    }
  return out;
}

// RWKV-7: S_t = diag(w_t)·S_{t-1} - (κ̂_t⊙a_t)ᵀ·(κ̂_t·S_{t-1}) + k̃_tᵀ·v_t, o_t = r_t·S_t, from its
// gates decay and rate and its weights k_k and k_a [1, 1, heads, dim].
inline Array goose_attention(const Array& r, const Array& k, const Array& v, const Array& decay,
                             const Array& rate, const Array& k_k, const Array& k_a,
                             const std::vector<Index>& lengths,
                             const std::vector<Index>& rows = {}) {
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  Array out(r.batch, r.heads, r.len, v.dim);
  const std::vector<bool> wanted = wanted_of(rows, r.len);
  for (Index b = 0; b < r.batch; ++b)
    for (Index h = 0; h < r.heads; ++h) {
      Array state(1, 1, r.dim, v.dim);
      for (Index t = 0; t < r.len; ++t) {
        if (lengths.empty() || t < lengths[at(b)]) {
          std::vector<double> key(at(r.dim)), read(at(v.dim));
          double square = 1e-6;
          for (Index c = 0; c < r.dim; ++c) key[at(c)] = k.at(b, h, t, c) * k_k.at(0, 0, h, c);
          for (const double x : key) square += x * x;
          for (double& x : key) x /= std::sqrt(square);
          for (Index c = 0; c < r.dim; ++c)
            add_times(key[at(c)], state.line(0, 0, c), read.data(), v.dim);
          for (Index c = 0; c < r.dim; ++c) {
            const double a = logistic(rate.at(b, h, t, c));
            const double w = std::exp(-std::exp(-0.5) * logistic(decay.at(b, h, t, c)));
            const double written = k.at(b, h, t, c) * (1 + (a - 1) * k_a.at(0, 0, h, c));
            double* const line = state.line(0, 0, c);
            const double* const value = v.line(b, h, t);
            const double removed = key[at(c)] * a;
            for (Index j = 0; j < v.dim; ++j)
              line[j] = w * line[j] - removed * read[at(j)] + written * value[j];
          }
        }
        for (Index c = 0; wanted[at(t)] && c < r.dim; ++c)
          add_times(r.at(b, h, t, c), state.line(0, 0, c), out.line(b, h, t), v.dim);
      }
    }
  return out;
}

}  // namespace oracle
