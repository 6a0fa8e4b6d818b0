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
        for (std::size_t s = 0; s < seen.size(); ++s) {
          const double share = weights[s] / total;
          for (Index c = 0; c < v.dim; ++c) out.at(b, h, i, c) += share * v.at(b, h, seen[s], c);
        }
      }
  return out;
}

inline double no_scale(Index, Index, Index, Index) { return 0; }

// [cos(ω_f·x), sin(ω_f·x)] / sqrt(directions) of each row, whose products are the mean of
// cos(ω_f·(x - y)): omega [1, heads, directions, dim], each number of a direction multiplied by
// that of `scales` [1, 1, heads, dim].
inline Array waves(const Array& omega, const Array& scales, const Array& rows) {
  Array phi(rows.batch, rows.heads, rows.len, 2 * omega.len), directions = omega;
  for (Index h = 0; h < rows.heads; ++h)
    for (Index f = 0; f < omega.len; ++f)
      for (Index c = 0; c < rows.dim; ++c) directions.at(0, h, f, c) *= scales.at(0, 0, h, c);
  const double unit = 1 / std::sqrt(static_cast<double>(omega.len));
  for (Index b = 0; b < rows.batch; ++b)
    for (Index h = 0; h < rows.heads; ++h)
      for (Index i = 0; i < rows.len; ++i)
        for (Index f = 0; f < omega.len; ++f) {
          const double angle = dot(directions.row(0, h, f), rows.row(b, h, i));
          phi.at(b, h, i, f) = unit * std::cos(angle);
          phi.at(b, h, i, omega.len + f) = unit * std::sin(angle);
        }
  return phi;
}

// ωx of head h.
inline std::vector<double> projected(const Array& omega, Index h, Row x) {
  std::vector<double> y;
  for (Index f = 0; f < omega.len; ++f) y.push_back(dot(omega.row(0, h, f), x));
  return y;
}

// ωx of every row.
inline Array projected_rows(const Array& omega, const Array& x) {
  Array y(x.batch, x.heads, x.len, omega.len);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index f = 0; f < omega.len; ++f)
          y.at(b, h, i, f) = dot(omega.row(0, h, f), x.row(b, h, i));
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
