// Mega's layer the slow, obvious way, in double: one sum after the other. Ma et al. 2022,
// arXiv:2209.10655, sections 3.1 to 3.4. Rows are Array [batch, 1, len, width].
#pragma once

#include <algorithm>
#include <cmath>

#include "variants/reference/units.h"

namespace oracle {

struct MegaForm {
  bool causal = false, softmax = true;
  Index chunk = 0;  // 0: all positions are one
};

// Adds Σ_n γ_n·h_n/√N, h_n = (1 - p_n·a_n)·h_n + p_n·β_n·x, of the first `valid` rows, `back` from
// the last of them to the first. w: δ, α, β, γ [1, 1, states, width] from `first` on.
inline void add_averages(const Array& x, Index b, Index valid, const std::vector<Array>& w,
                         std::size_t first, bool back, Array& to) {
  const Index states = w[first].len;
  const double root = std::sqrt(static_cast<double>(states));
  for (Index n = 0; n < states; ++n) {
    std::vector<double> keep, in, out, h(static_cast<std::size_t>(x.dim));  // of each channel
    for (Index c = 0; c < x.dim; ++c) {
      const double p = logistic(w[first].at(0, 0, n, c));
      keep.push_back(1 - p * logistic(w[first + 1].at(0, 0, n, c)));
      in.push_back(p * w[first + 2].at(0, 0, n, c));
      out.push_back(w[first + 3].at(0, 0, n, c) / root);
    }
    for (Index i = 0; i < valid; ++i) {
      const Index t = back ? valid - 1 - i : i;
      for (Index c = 0; c < x.dim; ++c) {
        const auto at = static_cast<std::size_t>(c);
        h[at] = keep[at] * h[at] + in[at] * x.at(b, 0, t, c);
        to.at(b, 0, t, c) += out[at] * h[at];
      }
    }
  }
}

// Weights of the keys [first, last) for a query.
inline std::vector<double> mega_weights(const std::vector<double>& q,
                                        const std::vector<std::vector<double>>& k, Index first,
                                        Index last, bool softmax) {
  std::vector<double> weights;
  double top = -INFINITY, sum = 0;
  for (Index j = first; j < last; ++j) {
    const double product = dot(q, k[static_cast<std::size_t>(j)]);
    weights.push_back(softmax ? product / std::sqrt(static_cast<double>(q.size()))
                              : std::max(0.0, product) / static_cast<double>(last - first));
    top = std::max(top, weights.back());
  }
  for (double& weight : weights) {
    weight = softmax ? std::exp(weight - top) : weight * weight;
    sum += weight;
  }
  for (double& weight : weights) weight /= softmax ? sum : 1;
  return weights;
}

// w: of each direction δ, α, β, γ; ω; then matrix and bias of z, scale and shift of queries and of
// keys, matrix and bias of v, r, u and the candidate, and U.
inline Array mega(const Array& x, const std::vector<Array>& w, const MegaForm& form,
                  const Valid& valid, const std::vector<Index>& wanted = {}) {
  const std::vector<Index> rows = wanted_rows(wanted, x.len);
  const std::size_t skip = form.causal ? 4 : 8;
  const auto of = [&](std::size_t i) -> const Array& { return w[skip + i]; };
  const auto same = [](double value) { return value; };
  Array averages(x.batch, 1, x.len, x.dim), out(x.batch, 1, x.len, x.dim);
  for (Index b = 0; b < x.batch; ++b) {
    const Index n = valid.of(x, b);
    add_averages(x, b, n, w, 0, false, averages);
    if (!form.causal) add_averages(x, b, n, w, 4, true, averages);
    std::vector<std::vector<double>> e, q, k, v;
    for (Index i = 0; i < n; ++i) {
      e.emplace_back(), q.emplace_back(), k.emplace_back();
      for (Index c = 0; c < x.dim; ++c)
        e.back().push_back(silu(averages.at(b, 0, i, c) + of(0).at(0, 0, 0, c) * x.at(b, 0, i, c)));
      const std::vector<double> z = through(e.back(), of(1), &of(2), silu);
      for (Index c = 0; c < of(1).dim; ++c) {
        const double value = z[static_cast<std::size_t>(c)];
        q.back().push_back(value * of(3).at(0, 0, 0, c) + of(4).at(0, 0, 0, c));
        k.back().push_back(value * of(5).at(0, 0, 0, c) + of(6).at(0, 0, 0, c));
      }
      v.push_back(through(x.row(b, 0, i), of(7), &of(8), silu));
    }
    for (const Index i : rows) {
      if (i >= n) continue;
      const auto at = static_cast<std::size_t>(i);
      const Index first = form.chunk > 0 ? i / form.chunk * form.chunk : 0,
                  end = form.chunk > 0 ? std::min(n, first + form.chunk) : n;
      const std::vector<double> weights =
          mega_weights(q[at], k, first, form.causal ? i + 1 : end, form.softmax);
      std::vector<double> mixed = through(e[at], of(9), &of(10), silu), sums(mixed.size());
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const std::vector<double>& value = v[static_cast<std::size_t>(first) + j];
        add_times(weights[j], value.data(), sums.data(), static_cast<Index>(sums.size()));
      }
      for (std::size_t c = 0; c < mixed.size(); ++c) mixed[c] *= sums[c];
      const std::vector<double> update = through(e[at], of(11), &of(12), logistic),
                                own = through(e[at], of(13), &of(14), same),
                                attended = through(mixed, of(15), nullptr, same);
      for (Index c = 0; c < x.dim; ++c) {
        const auto column = static_cast<std::size_t>(c);
        const double old = x.at(b, 0, i, c);
        out.at(b, 0, i, c) = old + update[column] * (silu(own[column] + attended[column]) - old);
      }
    }
  }
  return out;
}

}  // namespace oracle
