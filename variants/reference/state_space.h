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
      for (Index channel = 0; channel < x.dim; ++channel) {
        std::vector<double> h(static_cast<std::size_t>(b.dim)), rates;
        for (Index n = 0; n < b.dim; ++n) rates.push_back(-std::exp(a_log.at(0, head, n, channel)));
        for (Index t = 0; t < valid.of(x, i); ++t) {
          const double step = softplus(gates[0].at(i, head, t, channel)),
                       written = step * x.at(i, head, t, channel);
          const double *const in = b.line(i, head, t), *const out = c.line(i, head, t);
          double sum = 0;
          for (std::size_t n = 0; n < h.size(); ++n) {
            h[n] = std::exp(rates[n] * step) * h[n] + written * in[n];
            sum += out[n] * h[n];
          }
          y.at(i, head, t, channel) = sum;
        }
      }
  return y;
}

constexpr Index kRenewed = 64;  // steps after which a product of powers is taken anew

// Gu et al. 2022, eq. 3: a convolution with the kernel 2·Re Σ_n C_n·B̄_n·Ā_n^t of each channel, with
// nothing of a recurrence. O(n²).
inline Array s4d(const Array& x, const std::vector<Array>& weights, const Valid& valid,
                 const std::vector<Index>& rows = {}) {
  const Index pairs = weights[1].len;
  const std::vector<bool> wanted = wanted_of(rows, x.len);
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
        const std::complex held = (std::exp(step * a) - 1.0) / a, once = std::exp(step * a);
        std::complex power = c * held;  // times e^(t·step·a)
        for (Index t = 0; t < x.len; ++t, power *= once) {
          if (t % kRenewed == 0) power = c * held * std::exp(static_cast<double>(t) * step * a);
          kernel[static_cast<std::size_t>(t)] += 2 * power.real();
        }
      }
      for (Index i = 0; i < x.batch; ++i)
        for (Index t = 0; t < valid.of(x, i); ++t)
          for (Index s = 0; wanted[static_cast<std::size_t>(t)] && s <= t; ++s)
            y.at(i, head, t, channel) +=
                kernel[static_cast<std::size_t>(t - s)] * x.at(i, head, s, channel);
    }
  return y;
}

// Orvieto et al. 2023, eqs. 2-8: h_t = a⊙h_{t-1} + γ⊙(B·x_t), y_t = Re(C·h_t), where B and C hold
// real parts beside imaginary ones.
inline Array lru(const Array& rows, const std::vector<Array>& weights, const Valid& valid,
                 const std::vector<Index>& wanted_positions = {}) {
  const Array x = merged(rows);
  const Array &poles = weights[0], &input = weights[1], &output = weights[2];
  const Index width = x.dim;
  const std::vector<bool> wanted = wanted_of(wanted_positions, x.len);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  Array y(x.batch, 1, x.len, width);
  for (Index i = 0; i < x.batch; ++i) {
    std::vector<std::complex<double>> a, h(at(width));
    for (Index n = 0; n < width; ++n)
      a.push_back(
          std::exp(std::complex(-std::exp(poles.at(0, 0, 0, n)), std::exp(poles.at(0, 0, 1, n)))));
    for (Index t = 0; t < valid.of(x, i); ++t) {
      const std::vector<double> written = times(x.row(i, 0, t), input);  // B·x, by parts
      for (Index n = 0; n < width; ++n)
        h[at(n)] = a[at(n)] * h[at(n)] + std::exp(poles.at(0, 0, 2, n)) *
                                             std::complex(written[at(n)], written[at(width + n)]);
      for (Index n = 0; wanted[at(t)] && n < width; ++n) {  // C of the imaginary parts has the sign
        add_times(h[at(n)].real(), output.line(0, 0, n), y.line(i, 0, t), width);
        add_times(h[at(n)].imag(), output.line(0, 0, width + n), y.line(i, 0, t), width);
      }
    }
  }
  return split(y, rows.heads);
}

}  // namespace oracle
