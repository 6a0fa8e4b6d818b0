// Attention whose weights are kernels of two rows, normalised by their sum, in double: kernels that
// features give exactly. O(n²) kernels.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

// What divides, of Σ_j kernel·e^log_scale and Σ_j e^log_scale; 0: the outputs are zeros.
using OfSums = std::function<double(double total, double bound)>;

// Σ_j kernel·e^log_scale·v_j / divisor over the visible keys, log_scale relative to the largest of
// them.
inline Array kernel_ratio(const Array& q, const Array& v, const Visibility& m, const OfPair& kernel,
                          const OfPair& log_scale, const OfSums& divisor) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows) {
        std::vector<Index> seen;
        double top = -INFINITY, total = 0, bound = 0;
        for (Index j = 0; j < v.len; ++j)
          if (sees(m, b, i, j, q.len, v.len) && (!m.allows || m.allows(b, h, i, j))) {
            seen.push_back(j);
            top = std::fmax(top, log_scale(b, h, i, j));
          }
        std::vector<double> weights;
        for (const Index j : seen) {
          const double scale = std::exp(log_scale(b, h, i, j) - top);
          weights.push_back(kernel(b, h, i, j) * scale);
          total += weights.back();
          bound += scale;
        }
        total = divisor(total, bound);
        if (total == 0) continue;
        for (std::size_t s = 0; s < seen.size(); ++s) {
          add_times(weights[s] / total, v.line(b, h, seen[s]), out.line(b, h, i), v.dim);
        }
      }
  return out;
}

// The same divided by Σ_j kernel·e^log_scale: if that is at most 0, the outputs are zeros; with
// `least` > 0 kernels may be negative, and a divisor nearer to 0 becomes `least` with its sign.
inline Array kernel_ratio(const Array& q, const Array& v, const Visibility& m, const OfPair& kernel,
                          const OfPair& log_scale, double least) {
  return kernel_ratio(q, v, m, kernel, log_scale, [least](double total, double) {
    if (least <= 0) return total > 0 ? total : 0;
    return std::fabs(total) < least ? std::copysign(least, total) : total;
  });
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

// x/dim^¼, so that products of rows are q·k/√dim.
inline Array scaled_rows(const Array& x) {
  Array y = x;
  for (double& value : y.x) value *= std::pow(static_cast<double>(x.dim), -0.25);
  return y;
}

// Weights e^{|k|²/2}·mean of cos(ω(q - k)) of rows over dim^¼, divided by their sum, but at least
// by `share` of Σ_j e^{|k_j|²/2}.
inline Array trigonometric_attention(const Array& q, const Array& k, const Array& v,
                                     const Visibility& m, const Array& omega, double share) {
  Array ones(1, 1, omega.heads, omega.dim);
  for (double& value : ones.x) value = 1;
  const Array keys = scaled_rows(k), phi_q = waves(omega, ones, scaled_rows(q)),
              phi_k = waves(omega, ones, keys);
  const auto kernel = [&](Index b, Index h, Index i, Index j) {
    return dot(phi_q.row(b, h, i), phi_k.row(b, h, j));
  };
  const auto log_scale = [&](Index b, Index h, Index, Index j) {
    return dot(keys.row(b, h, j), keys.row(b, h, j)) / 2;
  };
  return kernel_ratio(q, v, m, kernel, log_scale, [share](double total, double bound) {
    return std::fmax(total, share * bound);
  });
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
