// Multi-head latent attention, the slow, obvious way: in double, one pair of positions at a time.
#pragma once

#include <cmath>
#include <vector>

#include "variants/reference/mixers.h"

namespace oracle {

// The pair (2c, 2c + 1) by position·10000^(-2c/size).
inline void rotate_pairs(double* x, Index size, Index position) {
  for (Index c = 0; c + 1 < size; c += 2) {
    const double angle = static_cast<double>(position) *
                         std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(size));
    const double a = x[c], b = x[c + 1], cosine = std::cos(angle), sine = std::sin(angle);
    x[c] = cosine * a - sine * b;
    x[c + 1] = sine * a + cosine * b;
  }
}

// Rows x [batch, 1, len, width]; w: down, the gain if `norm`, up_k, up_v, query, out. The others
// are zeros where rows are `wanted`.
inline Array latent_attention(const Array& x, const std::vector<Array>& w, Index heads,
                              Index rotary, bool norm, bool causal,
                              const std::vector<Index>& lengths,
                              const std::vector<Index>& wanted = {}) {
  const Array &down = w[0], &up_k = w[norm ? 2 : 1], &up_v = w[norm ? 3 : 2],
              &query = w[norm ? 4 : 3], &last = w[norm ? 5 : 4];
  const Index r = up_k.len, d = x.dim / heads;
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  Array q(x.batch, heads, x.len, d + rotary), k = q, v(x.batch, heads, x.len, d);
  for (Index b = 0; b < x.batch; ++b)
    for (Index i = 0; i < x.len; ++i) {
      if (!lengths.empty() && i >= lengths[static_cast<std::size_t>(b)]) continue;  // zeros
      const std::vector<double> both = times(x.row(b, 0, i), down);
      std::vector<double> latent(both.begin(), both.begin() + r);
      std::vector<double> turned(both.begin() + r, both.end());
      double squares = 1e-6;
      for (const double value : latent) squares += value * value / static_cast<double>(r);
      for (Index j = 0; norm && j < r; ++j)
        latent[static_cast<std::size_t>(j)] *= w[1].at(0, 0, 0, j) / std::sqrt(squares);
      rotate_pairs(turned.data(), rotary, i);
      const std::vector<double> keys = times(latent, up_k), values = times(latent, up_v);
      for (Index h = 0; h < heads; ++h) {
        for (Index c = 0; c < d + rotary; ++c)
          k.at(b, h, i, c) = c < d ? keys[static_cast<std::size_t>(h * d + c)]
                                   : turned[static_cast<std::size_t>(c - d)];
        for (Index c = 0; c < d; ++c)
          v.at(b, h, i, c) = values[static_cast<std::size_t>(h * d + c)];
      }
    }
  for (Index b = 0; b < x.batch; ++b)
    for (const Index i : rows) {
      if (!lengths.empty() && i >= lengths[static_cast<std::size_t>(b)]) continue;
      std::vector<double> queries = times(x.row(b, 0, i), query);
      for (Index h = 0; h < heads; ++h) {
        double* const own = queries.data() + h * (d + rotary);
        rotate_pairs(own + d, rotary, i);
        for (Index c = 0; c < d + rotary; ++c) q.at(b, h, i, c) = own[c];
      }
    }
  const Array mixed =
      merged(softmax_attention(q, k, v, {.causal = causal, .lengths = lengths, .rows = wanted}));
  Array out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (const Index i : rows) {
      const std::vector<double> row = times(mixed.row(b, 0, i), last);
      for (Index c = 0; c < x.dim; ++c) out.at(b, 0, i, c) = row[static_cast<std::size_t>(c)];
    }
  return out;
}

}  // namespace oracle
