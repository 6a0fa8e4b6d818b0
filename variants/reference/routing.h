// Attention inside clusters written out from Roy et al. 2021, section 4.1: layer norms, the choice
// of each centroid or of each position, one softmax a cluster. O(n²·d) in double.
#pragma once

#include <algorithm>
#include <numeric>

#include "variants/reference/attention.h"

namespace oracle {

inline Array layer_normalised(const Array& x) {
  Array out = x;
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i) {
        double mean = 0, variance = 0;
        for (Index c = 0; c < x.dim; ++c) mean += x.at(b, h, i, c) / static_cast<double>(x.dim);
        for (Index c = 0; c < x.dim; ++c)
          variance += (x.at(b, h, i, c) - mean) * (x.at(b, h, i, c) - mean);
        variance /= static_cast<double>(x.dim);
        for (Index c = 0; c < x.dim; ++c)
          out.at(b, h, i, c) = (x.at(b, h, i, c) - mean) / std::sqrt(variance + 1e-5);
      }
  return out;
}

// Σ_j softmax(x_i·y_j/√d)·v_j over a list of keys.
inline std::vector<double> attend_to(Row query, const Array& k, const Array& v, Index b, Index h,
                                     const std::vector<Index>& keys) {
  std::vector<double> logits, sum(static_cast<std::size_t>(v.dim));
  double top = -INFINITY, total = 0;
  for (const Index j : keys) {
    logits.push_back(dot(query, k.row(b, h, j)) / std::sqrt(static_cast<double>(v.dim)));
    top = std::fmax(top, logits.back());
  }
  for (double& x : logits) total += x = std::exp(x - top);
  for (std::size_t s = 0; s < keys.size(); ++s)
    add_times(logits[s] / total, v.line(b, h, keys[s]), sum.data(), v.dim);
  return sum;
}

// centroids [1, heads, clusters, dim]; window 0: ⌈length / clusters⌉
inline Array balanced_routing(const Array& q, const Array& k, const Array& v,
                              const Array& centroids, Index window,
                              const std::vector<Index>& lengths,
                              const std::vector<Index>& rows = {}) {
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  const Array x = layer_normalised(q), y = layer_normalised(k);
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
      const Index each = window > 0 ? window : (valid + centroids.len - 1) / centroids.len;
      const auto chosen = [&](const Array& of, Index c) {
        std::vector<Index> order(static_cast<std::size_t>(valid));
        std::iota(order.begin(), order.end(), Index{0});
        std::vector<double> scores;
        for (Index i = 0; i < valid; ++i)
          scores.push_back(dot(of.row(b, h, i), centroids.row(0, h, c)));
        std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) {
          return scores[static_cast<std::size_t>(i)] > scores[static_cast<std::size_t>(j)];
        });
        order.resize(static_cast<std::size_t>(std::min(each, valid)));
        return order;
      };
      std::vector<double> times(static_cast<std::size_t>(q.len));
      for (Index c = 0; c < centroids.len; ++c) {
        const std::vector<Index> keys = chosen(y, c);
        for (const Index i : chosen(x, c)) {
          if (!wanted[static_cast<std::size_t>(i)]) continue;
          times[static_cast<std::size_t>(i)] += 1;
          const std::vector<double> answer = attend_to(x.row(b, h, i), y, v, b, h, keys);
          for (Index e = 0; e < q.dim; ++e)
            out.at(b, h, i, e) += answer[static_cast<std::size_t>(e)];
        }
      }
      for (Index i = 0; i < valid; ++i)
        for (Index e = 0; e < q.dim; ++e)
          if (times[static_cast<std::size_t>(i)] > 0)
            out.at(b, h, i, e) /= times[static_cast<std::size_t>(i)];
    }
  return out;
}

inline Array nearest_routing(const Array& q, const Array& v, const Array& centroids, Index window,
                             const Visibility& m) {
  const Array x = layer_normalised(q);
  const std::vector<bool> wanted = wanted_of(m.rows, q.len);
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      std::vector<std::vector<Index>> members(static_cast<std::size_t>(centroids.len));
      for (Index i = 0; i < valid; ++i) {
        Index best = 0;
        for (Index c = 1; c < centroids.len; ++c)
          if (dot(x.row(b, h, i), centroids.row(0, h, c)) >
              dot(x.row(b, h, i), centroids.row(0, h, best)))
            best = c;
        members[static_cast<std::size_t>(best)].push_back(i);
      }
      for (const std::vector<Index>& list : members)
        for (Index s = 0; s < std::ssize(list); ++s) {
          if (!wanted[static_cast<std::size_t>(list[static_cast<std::size_t>(s)])]) continue;
          std::vector<Index> keys;
          for (Index t = 0; t < std::ssize(list); ++t) {
            const Index apart = s / window - t / window;
            if ((apart == 0 && (!m.causal || t <= s)) || apart == 1)
              keys.push_back(list[static_cast<std::size_t>(t)]);
          }
          const Index i = list[static_cast<std::size_t>(s)];
          const std::vector<double> answer = attend_to(x.row(b, h, i), x, v, b, h, keys);
          for (Index e = 0; e < q.dim; ++e)
            out.at(b, h, i, e) = answer[static_cast<std::size_t>(e)];
        }
    }
  return out;
}

}  // namespace oracle
