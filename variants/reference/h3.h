// Two state spaces between queries, keys and values, the slow, obvious way: double precision,
// nothing shared with the library. O(n²).
#pragma once

#include <cmath>
#include <complex>

#include "variants/reference/mixers.h"

namespace oracle {

// Fu et al. 2023, section 3.1: q ⊙ (SSM_diag + D)(((SSM_shift + D_k)(k)) ⊙ v), each SSM as the
// convolution of a channel with its kernel. Padding is not read, and its outputs are 0. weights:
// shift_C [1, heads, shift, dim], shift_D [1, 1, heads, dim], log_dt, log_A_real, A_imag, B_real,
// B_imag, C_real, C_imag [1, heads, pairs, dim], D.
inline Array h3(const Array& q, const Array& k, const Array& v, const std::vector<Array>& weights,
                const Valid& valid, const std::vector<Index>& rows = {}) {
  using Complex = std::complex<double>;
  const Array& shift = weights[0];
  const Index pairs = weights[3].len;
  const std::vector<bool> wanted = wanted_of(rows, v.len);
  Array y(v.batch, v.heads, v.len, v.dim);
  for (Index head = 0; head < v.heads; ++head)
    for (Index c = 0; c < v.dim; ++c) {
      const auto number = [&](std::size_t i) { return weights[i].at(0, 0, head, c); };
      const auto of_state = [&](std::size_t i, Index n) { return weights[i].at(0, head, n, c); };
      std::vector<double> kernel(static_cast<std::size_t>(v.len), 0.0);
      const double step = std::exp(number(2));
      for (Index n = 0; n < pairs; ++n) {
        const Complex a(-std::exp(of_state(3, n)), of_state(4, n)),
            b(of_state(5, n), of_state(6, n)), out(of_state(7, n), of_state(8, n));
        const Complex half = step * a / 2.0, turned = (1.0 + half) / (1.0 - half),
                      start = out * b * step / (1.0 - half);
        for (Index t = 0; t < v.len; ++t)
          kernel[static_cast<std::size_t>(t)] +=
              2 * (start * std::pow(turned, static_cast<double>(t))).real();
      }
      kernel[0] += number(9);
      for (Index b = 0; b < v.batch; ++b) {
        const Index len = valid.of(v, b);
        std::vector<double> read(static_cast<std::size_t>(len));
        for (Index t = 0; t < len; ++t) {
          double shifted = number(1) * k.at(b, head, t, c);
          for (Index j = 0; j < shift.len && j <= t; ++j)
            shifted += shift.at(0, head, j, c) * k.at(b, head, t - j, c);
          read[static_cast<std::size_t>(t)] = shifted * v.at(b, head, t, c);
        }
        for (Index t = 0; t < len; ++t) {
          if (!wanted[static_cast<std::size_t>(t)]) continue;
          double sum = 0;
          for (Index s = 0; s <= t; ++s)
            sum += kernel[static_cast<std::size_t>(t - s)] * read[static_cast<std::size_t>(s)];
          y.at(b, head, t, c) = q.at(b, head, t, c) * sum;
        }
      }
    }
  return y;
}

}  // namespace oracle
