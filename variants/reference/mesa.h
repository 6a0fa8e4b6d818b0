// The mesa layer, one position after the other, each with a solution of its linear system by
// Cholesky's method: double precision, nothing shared with the library.
#pragma once

#include "variants/reference/gated.h"

namespace oracle {

// The solution of a·x = b, a [n, n] symmetric and positive; both are overwritten, b by x.
inline void solve_symmetric(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {  // a = l·lᵀ, row by row
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t c = 0; c < j; ++c) sum -= a[i * n + c] * a[j * n + c];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
    for (std::size_t c = 0; c < i; ++c) b[i] -= a[i * n + c] * b[c];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t c = i + 1; c < n; ++c) b[i] -= a[c * n + i] * b[c];
    b[i] /= a[i * n + i];
  }
}

// o_t = q_t·(H_t + diag(λ))⁻¹·R_t, H_t = a_t·H_{t-1} + β_t·k_tᵀ·k_t, R_t = a_t·R_{t-1} +
// β_t·k_tᵀ·v_t with a = σ(decay), β = σ(beta), λ = softplus(ridge [1, 1, heads, dim]) + least.
inline Array mesa_attention(const Array& q, const Array& k, const Array& v, const Array& decay,
                            const Array& beta, const Array& ridge, double least,
                            const std::vector<Index>& lengths,
                            const std::vector<Index>& rows = {}) {
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto at = [&](Index i, Index j) { return static_cast<std::size_t>(i * q.dim + j); };
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      std::vector<double> system(at(q.dim, 0));
      Array sums(1, 1, q.dim, v.dim);
      for (Index t = 0; t < q.len; ++t) {
        if (lengths.empty() || t < lengths[static_cast<std::size_t>(b)]) {
          const double a = logistic(decay.at(b, h, t, 0)), strength = logistic(beta.at(b, h, t, 0));
          for (Index i = 0; i < q.dim; ++i) {
            const double key = strength * k.at(b, h, t, i);
            double* const of_keys = &system[at(i, 0)];
            double* const of_values = sums.line(0, 0, i);
            for (Index j = 0; j < q.dim; ++j) of_keys[j] *= a;
            for (Index j = 0; j < v.dim; ++j) of_values[j] *= a;
            add_times(key, k.line(b, h, t), of_keys, q.dim);
            add_times(key, v.line(b, h, t), of_values, v.dim);
          }
        }
        if (!wanted[static_cast<std::size_t>(t)]) continue;
        std::vector<double> left = system, x;
        for (Index i = 0; i < q.dim; ++i) {
          x.push_back(q.at(b, h, t, i));
          left[at(i, i)] += softplus(ridge.at(0, 0, h, i)) + least;
        }
        solve_symmetric(left, x);
        for (Index i = 0; i < q.dim; ++i)
          add_times(x[static_cast<std::size_t>(i)], sums.line(0, 0, i), out.line(b, h, t), v.dim);
      }
    }
  return out;
}

}  // namespace oracle
