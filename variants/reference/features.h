// Attention whose weights are kernels of two rows, normalised by their sum, in double: kernels that
// features give exactly. O(n²) kernels.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

// Σ_j kernel·e^log_scale·v_j / Σ_j kernel·e^log_scale over the visible keys, log_scale relative to
// the largest of them. A divisor of at most 0 gives zeros; with `least` > 0 kernels may be
// negative, and a divisor nearer to 0 becomes `least` with its sign.
inline Array kernel_ratio(const Array& q, const Array& v, const Visibility& m, const OfPair& kernel,
                          const OfPair& log_scale, double least) {
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < q.len; ++i) {
        std::vector<Index> seen;
        double top = -INFINITY, total = 0;
        for (Index j = 0; j < v.len; ++j)
          if (sees(m, b, i, j, q.len, v.len) && (!m.allows || m.allows(b, h, i, j))) {
            seen.push_back(j);
            top = std::fmax(top, log_scale(b, h, i, j));
          }
        std::vector<double> weights;
        for (const Index j : seen) {
          weights.push_back(kernel(b, h, i, j) * std::exp(log_scale(b, h, i, j) - top));
          total += weights.back();
        }
        if (least > 0 && std::fabs(total) < least) total = std::copysign(least, total);
        if (least <= 0 && !(total > 0)) continue;
        for (std::size_t s = 0; s < seen.size(); ++s)
          for (Index c = 0; c < v.dim; ++c)
            out.at(b, h, i, c) += weights[s] / total * v.at(b, h, seen[s], c);
      }
  return out;
}

inline double no_scale(Index, Index, Index, Index) { return 0; }

// The mean of cos(ω_f·(x - y)) over the rows of omega [1, heads, directions, dim], each number of a
// direction multiplied by that of `scales` [dim], if there are any.
inline double mean_cosine(const Array& omega, Index h, Row scales, Row x, Row y) {
  double sum = 0;
  for (Index f = 0; f < omega.len; ++f) {
    double angle = 0;
    for (std::size_t c = 0; c < x.size(); ++c)
      angle += omega.row(0, h, f)[c] * (scales.empty() ? 1 : scales[c]) * (x[c] - y[c]);
    sum += std::cos(angle);
  }
  return sum / static_cast<double>(omega.len);
}

// Softmax attention estimated by the sines and cosines of ωx·dim^-¼; `least` as above.
inline Array trigonometric_attention(const Array& q, const Array& k, const Array& v,
                                     const Array& omega, const Visibility& m, double least) {
  const std::vector<double> scales(static_cast<std::size_t>(q.dim),
                                   std::pow(static_cast<double>(q.dim), -0.25));
  const auto kernel = [&](Index b, Index h, Index i, Index j) {
    return mean_cosine(omega, h, scales, q.row(b, h, i), k.row(b, h, j));
  };
  const auto log_scale = [&](Index b, Index h, Index, Index j) {
    const Row row = k.row(b, h, j);
    return scales[0] * scales[0] * dot(row, row) / 2;
  };
  return kernel_ratio(q, v, m, kernel, log_scale, least);
}

// ωx of head h.
inline std::vector<double> projected(const Array& omega, Index h, Row x) {
  std::vector<double> y;
  for (Index f = 0; f < omega.len; ++f) y.push_back(dot(omega.row(0, h, f), x));
  return y;
}

// [softmax(y), softmax(-y)]
inline std::vector<double> softmax_pair(const std::vector<double>& y) {
  std::vector<double> phi;
  for (const int sign : {1, -1}) {
    double top = -INFINITY, sum = 0;
    for (const double value : y) top = std::fmax(top, sign * value);
    for (const double value : y) sum += std::exp(sign * value - top);
    for (const double value : y) phi.push_back(std::exp(sign * value - top) / sum);
  }
  return phi;
}

}  // namespace oracle
