// Test-time training of a linear model with its weights W_i written out for each position: double
// precision, nothing shared with the library.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

// x̂ of a row, and 1/deviation.
inline std::pair<std::vector<double>, double> normalised(const std::vector<double>& x) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / count;
  for (const double value : x) variance += (value - mean) * (value - mean) / count;
  const double inverse = 1 / std::sqrt(variance + 1e-6);
  std::vector<double> normal;
  for (const double value : x) normal.push_back((value - mean) * inverse);
  return {normal, inverse};
}

// o_i = q_i + LN(q_i·W_i + b_i): with the state (W, b) before the mini-batch of i, (W_i, b_i) is
// (W, b) - Σ_{j<=i} max(0, 1/(i+1) + theta_i)·rate_j·(k_jᵀ·G_j, G_j) over the mini-batch, i from 0
// in it, and G_j the gradient of |LN(z_j) - (v_j - k_j)|²/2 by z_j = k_j·W + b. Queries
// in the padding meet the model that the last valid position left; without one, outputs are 0.
// `weights`: theta [1, 1, 1, mini_batch], gain and shift of LN [1, 1, heads, dim], W [1, heads,
// dim, dim] and b [1, 1, heads, dim] at the start.
inline Array trained_outputs(const Array& q, const Array& k, const Array& v, const Array& rate,
                             const std::vector<Array>& weights, const std::vector<Index>& lengths,
                             const std::vector<Index>& rows = {}) {
  const Array &theta = weights[0], &gains = weights[1], &shift = weights[2], &start = weights[3],
              &bias = weights[4];
  const Index d = q.dim, mini_batch = theta.dim;
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  Array out(q.batch, q.heads, q.len, d);
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Array before(1, 1, d + 1, d);  // W, then b
      for (Index c = 0; c <= d; ++c)
        for (Index e = 0; e < d; ++e)
          before.at(0, 0, c, e) = c < d ? start.at(0, h, c, e) : bias.at(0, 0, h, e);
      const auto model = [&](const Array& state, Row x) {
        std::vector<double> z(state.line(0, 0, d), state.line(0, 0, d) + d);
        for (Index c = 0; c < d; ++c) add_times(x[at(c)], state.line(0, 0, c), z.data(), d);
        return z;
      };
      Array sum(1, 1, d + 1, d), now = before;
      for (Index i = 0; i < q.len; ++i) {
        const Index valid = lengths.empty() ? q.len : lengths[at(b)];
        if (i < valid) {
          if (i % mini_batch == 0) before = now, sum = Array(1, 1, d + 1, d);
          const auto [normal, inverse] = normalised(model(before, k.row(b, h, i)));
          std::vector<double> pull(at(d));
          double mean = 0, along = 0;
          for (Index c = 0; c < d; ++c) {
            const double gain = gains.at(0, 0, h, c);
            pull[at(c)] = gain * (gain * normal[at(c)] + shift.at(0, 0, h, c) - v.at(b, h, i, c) +
                                  k.at(b, h, i, c));
            mean += pull[at(c)] / static_cast<double>(d);
            along += pull[at(c)] * normal[at(c)] / static_cast<double>(d);
          }
          std::vector<double> grad;
          for (Index e = 0; e < d; ++e)
            grad.push_back(inverse * (pull[at(e)] - mean - normal[at(e)] * along));
          for (Index c = 0; c <= d; ++c)
            add_times(rate.at(b, h, i, 0) * (c < d ? k.at(b, h, i, c) : 1), grad.data(),
                      sum.line(0, 0, c), d);
          const Index in_batch = i % mini_batch;
          const double token_rate =
              std::fmax(0, 1 / static_cast<double>(in_batch + 1) + theta.x[at(in_batch)]);
          for (std::size_t n = 0; n < now.x.size(); ++n)
            now.x[n] = before.x[n] - token_rate * sum.x[n];
        }
        if (valid == 0 || !wanted[at(i)]) continue;
        const std::vector<double> normal = normalised(model(now, q.row(b, h, i))).first;
        for (Index c = 0; c < d; ++c)
          out.at(b, h, i, c) =
              q.at(b, h, i, c) + gains.at(0, 0, h, c) * normal[at(c)] + shift.at(0, 0, h, c);
      }
    }
  return out;
}

}  // namespace oracle
