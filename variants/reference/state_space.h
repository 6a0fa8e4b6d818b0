// Diagonal state spaces one position, channel and state after the other: double precision, nothing
// shared with the library. O(n·channels·states).
#pragma once

#include <complex>

#include "variants/reference/gated.h"
#include "variants/reference/mixers.h"

namespace oracle {

// Gu and Dao 2023, algorithm 2: h_t = e^(Δ_t·A)·h_{t-1} + Δ_t·B_t·x_t, y_t = C_t·h_t. Gates Δ
// before its softplus, B and C; A_log [heads, states, dim]. Padding is not read and its outputs are
// 0.
inline Array mamba(const Array& x, const std::vector<Array>& gates, const Array& a_log,
                   const Valid& valid) {
  const Array &b = gates[1], &c = gates[2];
  Array y(x.batch, x.heads, x.len, x.dim);
  for (Index i = 0; i < x.batch; ++i)
    for (Index head = 0; head < x.heads; ++head)
      for (Index channel = 0; channel < x.dim; ++channel)
        for (Index n = 0; n < b.dim; ++n) {
          double h = 0;
          for (Index t = 0; t < valid.of(x, i); ++t) {
            const double step = softplus(gates[0].at(i, head, t, channel));
            h = std::exp(-std::exp(a_log.at(0, head, n, channel)) * step) * h +
                step * b.at(i, head, t, n) * x.at(i, head, t, channel);
            y.at(i, head, t, channel) += c.at(i, head, t, n) * h;
          }
        }
  return y;
}

// Gu et al. 2022, eq. 3: a convolution with the kernel 2·Re Σ_n C_n·B̄_n·Ā_n^t of each channel, with
// nothing of a recurrence. O(n²).
inline Array s4d(const Array& x, const std::vector<Array>& weights, const Valid& valid) {
  const Index pairs = weights[1].len;
  Array y(x.batch, x.heads, x.len, x.dim);
  for (Index head = 0; head < x.heads; ++head)
    for (Index channel = 0; channel < x.dim; ++channel) {
      const auto weight = [&](std::size_t i, Index n) {
        return weights[i].at(0, head, n, channel);
      };
      std::vector<double> kernel(static_cast<std::size_t>(x.len), 0.0);
      const double step = std::exp(weights[0].at(0, 0, head, channel));
      for (Index n = 0; n < pairs; ++n) {
        const std::complex a(-std::exp(weight(1, n)), weight(2, n)), c(weight(3, n), weight(4, n));
        const std::complex held = (std::exp(step * a) - 1.0) / a;
        for (Index t = 0; t < x.len; ++t)
          kernel[static_cast<std::size_t>(t)] +=
              2 * (c * held * std::exp(static_cast<double>(t) * step * a)).real();
      }
      for (Index i = 0; i < x.batch; ++i)
        for (Index t = 0; t < valid.of(x, i); ++t)
          for (Index s = 0; s <= t; ++s)
            y.at(i, head, t, channel) +=
                kernel[static_cast<std::size_t>(t - s)] * x.at(i, head, s, channel);
    }
  return y;
}

// Orvieto et al. 2023, eqs. 2-8: h_t = a⊙h_{t-1} + γ⊙(B·x_t), y_t = Re(C·h_t), where B and C hold
// real parts beside imaginary ones.
inline Array lru(const Array& rows, const std::vector<Array>& weights, const Valid& valid) {
  const Array x = merged(rows);
  const Array &poles = weights[0], &input = weights[1], &output = weights[2];
  const Index width = x.dim;
  Array y(x.batch, 1, x.len, width);
  for (Index i = 0; i < x.batch; ++i)
    for (Index n = 0; n < width; ++n) {
      const std::complex pole(-std::exp(poles.at(0, 0, 0, n)), std::exp(poles.at(0, 0, 1, n)));
      const std::complex<double> a = std::exp(pole);
      std::complex<double> h = 0;
      for (Index t = 0; t < valid.of(x, i); ++t) {
        std::complex<double> written = 0;
        for (Index c = 0; c < width; ++c)
          written +=
              x.at(i, 0, t, c) * std::complex(input.at(0, 0, c, n), input.at(0, 0, c, width + n));
        h = a * h + std::exp(poles.at(0, 0, 2, n)) * written;
        for (Index c = 0; c < width; ++c)  // C of the imaginary parts bears the sign
          y.at(i, 0, t, c) +=
              output.at(0, 0, n, c) * h.real() + output.at(0, 0, width + n, c) * h.imag();
      }
    }
  return split(y, rows.heads);
}

}  // namespace oracle
