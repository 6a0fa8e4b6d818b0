// Long convolutions and Fourier mixing the slow, obvious way: double precision, one sum after the
// other. Rows are Array [batch, 1, len, width], as in mixers.h.
#pragma once

#include <algorithm>
#include <numbers>

#include "variants/reference/mixers.h"

namespace oracle {

// Σ_j h_{i-j}·x_j + skip·x_i for each channel; filter [1, 1, taps, width], causal from distance 0
// on, else with distance 0 in its middle.
inline Array long_convolution(const Array& x, const Array& filter, const Array& skip, bool causal,
                              const Valid& valid, const std::vector<Index>& wanted = {}) {
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  const Index origin = causal ? 0 : (filter.len - 1) / 2;
  Array out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (const Index i : rows) {
      if (i >= valid.of(x, b)) continue;
      for (Index c = 0; c < x.dim; ++c) out.at(b, 0, i, c) = skip.at(0, 0, 0, c) * x.at(b, 0, i, c);
      const Index end = causal ? i + 1 : valid.of(x, b);
      for (Index j = 0; j < end; ++j) {
        const double *const taps = filter.line(0, 0, origin + i - j), *const from = x.line(b, 0, j);
        double* const to = out.line(b, 0, i);
        for (Index c = 0; c < x.dim; ++c) to[c] += taps[c] * from[c];
      }
    }
  return out;
}

// Poli et al. 2023, section 3.3: the tap of distance t in each channel. weights: those of hyena,
// after one another: (weight, bias) of each layer, frequency, out.
inline std::vector<double> implicit_tap(const std::vector<Array>& weights, Index t, Index longest) {
  const Index inputs = weights[0].len, width = weights[weights.size() - 2].dim;
  const double span = static_cast<double>(std::max<Index>(1, longest));
  std::vector<double> row = {static_cast<double>(t) / span};
  for (Index k = 1; 2 * k < inputs; ++k) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k * t) / static_cast<double>(longest + 1);
    row.push_back(std::cos(angle)), row.push_back(std::sin(angle));
  }
  const Array &frequency = weights[weights.size() - 3], &last = weights[weights.size() - 2];
  for (std::size_t layer = 0; layer + 3 < weights.size(); layer += 2) {
    row = times(row, weights[layer]);
    for (std::size_t j = 0; j < row.size(); ++j)
      row[j] = std::sin(frequency.x[j] * (row[j] + weights[layer + 1].x[j]));
  }
  std::vector<double> tap = times(row, last);
  for (Index c = 0; c < width; ++c) {
    // From rate 1.5 to 0.3 of the span at which the window is 0.01.
    const double share = width > 1 ? static_cast<double>(c) / static_cast<double>(width - 1) : 0;
    const double slow = std::log(100.0) / 1.5, fast = std::log(100.0) / 0.3;
    tap[static_cast<std::size_t>(c)] *=
        std::exp(-std::abs(static_cast<double>(t)) / span * (slow + share * (fast - slow)));
  }
  return tap;
}

// The filter of distances from -(len - 1), causal from 0, to len - 1.
inline Array implicit_filter(const std::vector<Array>& weights, Index len, Index longest,
                             bool causal) {
  const Index first = causal ? 0 : 1 - len;
  Array filter(1, 1, len - first, weights[weights.size() - 2].dim);
  for (Index t = first; t < len; ++t) {
    const std::vector<double> tap = implicit_tap(weights, t, longest);
    for (Index c = 0; c < filter.dim; ++c)
      filter.at(0, 0, t - first, c) = tap[static_cast<std::size_t>(c)];
  }
  return filter;
}

// Poli et al. 2023, definition 3.1 for order 2: q ⊙ (h∗(k⊙v) + skip ⊙ k⊙v); weights.back(): skip.
inline Array gated_convolution(const Array& q, const Array& k, const Array& v,
                               const std::vector<Array>& weights, Index longest, bool causal,
                               const Valid& valid, const std::vector<Index>& rows = {}) {
  Array gated = v;
  for (std::size_t i = 0; i < gated.x.size(); ++i) gated.x[i] *= k.x[i];
  Array out =
      split(long_convolution(merged(gated), implicit_filter(weights, v.len, longest, causal),
                             weights.back(), causal, valid, rows),
            v.heads);
  for (std::size_t i = 0; i < out.x.size(); ++i) out.x[i] *= q.x[i];
  return out;
}

// cos and -sin of 2π·r·c/n, [1, 1, n, n].
struct Turns {
  Array real, imaginary;
};
inline Turns turns_of(Index n) {
  Turns turns{Array(1, 1, n, n), Array(1, 1, n, n)};
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < n; ++c) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(r * c % n) / static_cast<double>(n);
      turns.real.at(0, 0, r, c) = std::cos(angle);
      turns.imaginary.at(0, 0, r, c) = -std::sin(angle);
    }
  return turns;
}

// Lee-Thorp et al. 2021, eq. 3: the real part of the transform along both axes, over valid rows.
inline Array fourier_mixing(const Array& x, const Valid& valid,
                            const std::vector<Index>& wanted = {}) {
  Array out(x.batch, 1, x.len, x.dim);
  const Turns of_channels = turns_of(x.dim);
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  for (Index b = 0; b < x.batch; ++b) {
    const Index n = valid.of(x, b);
    std::vector<std::vector<double>> real, imaginary;  // the transform of each row
    for (Index a = 0; a < n; ++a) {
      real.push_back(times(x.row(b, 0, a), of_channels.real));
      imaginary.push_back(times(x.row(b, 0, a), of_channels.imaginary));
    }
    for (const Index p : rows)
      for (Index a = 0; p < n && a < n; ++a) {
        const double angle =
            2 * std::numbers::pi * static_cast<double>(p * a % n) / static_cast<double>(n);
        const auto at = static_cast<std::size_t>(a);  // Re((u + iw)·(cos - i·sin))
        add_times(std::cos(angle), real[at].data(), out.line(b, 0, p), x.dim);
        add_times(std::sin(angle), imaginary[at].data(), out.line(b, 0, p), x.dim);
      }
  }
  return out;
}

}  // namespace oracle
