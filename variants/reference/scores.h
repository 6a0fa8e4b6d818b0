// The textbook's other scores, the slow, obvious way: additive, relu, and rotary positions. Written
// from the papers' equations in double, nothing shared with the library.
#pragma once

#include <cmath>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

// x·W of each head: W [1, heads, dim, units].
inline Array projected(const Array& x, const Array& w) {
  Array y(x.batch, x.heads, x.len, w.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c < w.len; ++c)
          add_times(x.at(b, h, i, c), w.line(0, h, c), y.line(b, h, i), w.dim);
  return y;
}

// softmax(w·tanh(W_q·q + W_k·k))·V; w is [1, 1, heads, units]. arXiv:1409.0473, appendix A.1.2.
inline Array additive_attention(const Array& q, const Array& k, const Array& v, const Array& to_q,
                                const Array& to_k, const Array& w, const Visibility& m) {
  const Array of_q = projected(q, to_q), of_k = projected(k, to_k);
  const auto doubled = [](Array x) {  // e^2x
    for (double& value : x.x) value = std::exp(2 * value);
    return x;
  };
  const Array power_q = doubled(of_q), power_k = doubled(of_k);
  return average(q, v, m, [&](Index b, Index h, Index i, Index j) {
    const Row a = power_q.row(b, h, i), c = power_k.row(b, h, j);
    double sum = 0;
    for (std::size_t u = 0; u < a.size(); ++u) {  // tanh(x) = 1 - 2/(e^2x + 1)
      const double power = a[u] * c[u];
      const double value = std::isnan(power)
                               ? std::tanh(of_q.row(b, h, i)[u] + of_k.row(b, h, j)[u])
                               : 1 - 2 / (power + 1);
      sum += w.at(0, 0, h, static_cast<Index>(u)) * value;
    }
    return sum;
  });
}

// Σ_j relu(q·k/√d)·v / count, counted over what is visible. arXiv:2309.08586, section 3.
inline Array relu_attention(const Array& q, const Array& k, const Array& v, const Visibility& m) {
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  std::vector<double> visible(static_cast<std::size_t>(q.batch * q.len));
  for (Index b = 0; b < q.batch; ++b)
    for (Index i = 0; i < q.len; ++i)
      for (Index j = 0; j < v.len; ++j)
        visible[static_cast<std::size_t>(b * q.len + i)] += sees(m, b, i, j, q.len, v.len);
  return weighted_sum(q, v, m, [&](Index b, Index h, Index i, Index j) {
    return std::fmax(0.0, tau * dot(q.row(b, h, i), k.row(b, h, j))) /
           visible[static_cast<std::size_t>(b * q.len + i)];
  });
}

// Row i turned by i·10000^(-2c/dim) in the plane (2c, 2c + 1). arXiv:2104.09864, eq. 34.
inline Array rotated(const Array& x, Index first) {
  Array out = x;
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c + 1 < x.dim; c += 2) {
          const double angle = static_cast<double>(first + i) *
                               std::pow(10000.0, -static_cast<double>(c) / double(x.dim));
          const double p = x.at(b, h, i, c), r = x.at(b, h, i, c + 1);
          out.at(b, h, i, c) = p * std::cos(angle) - r * std::sin(angle);
          out.at(b, h, i, c + 1) = p * std::sin(angle) + r * std::cos(angle);
        }
  return out;
}

}  // namespace oracle
