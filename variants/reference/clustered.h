// Clustered attention written out from Vyas et al. 2020, eqs. 3-9: codes, k-means by Hamming
// distance, the mean query of each cluster, and the top keys that each member weighs again.
// O(n²·d) in double.
#pragma once

#include <algorithm>
#include <bitset>
#include <numeric>

#include "variants/reference/attention.h"

namespace oracle {

// The clusters of the first `count` queries of one head, as lists; planes [1, heads, bits, dim+1].
inline std::vector<std::vector<Index>> clusters_of(const Array& q, const Array& planes, Index b,
                                                   Index h, Index count, Index clusters,
                                                   Index iterations) {
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<Index>> lists(at(clusters));
  if (clusters >= count) {
    for (Index i = 0; i < count; ++i) lists[at(i)] = {i};
    return lists;
  }
  using Code = std::bitset<64>;  // of at most 64 planes
  std::vector<Code> codes, centroids;
  for (Index i = 0; i < count; ++i) {
    Code code;
    for (Index s = 0; s < planes.len; ++s) {
      const Row plane = planes.row(0, h, s);
      code[at(s)] = plane[at(q.dim)] + dot(plane.first(at(q.dim)), q.row(b, h, i)) > 0;
    }
    codes.push_back(code);
  }
  for (Index c = 0; c < clusters; ++c) centroids.push_back(codes[at(c * count / clusters)]);
  for (Index step = 0; step <= iterations; ++step) {
    for (auto& list : lists) list.clear();
    for (Index i = 0; i < count; ++i) {
      Index best = 0, least = planes.len + 1;
      for (Index c = 0; c < clusters; ++c) {
        const auto distance = static_cast<Index>((codes[at(i)] ^ centroids[at(c)]).count());
        if (distance < least) least = distance, best = c;
      }
      lists[at(best)].push_back(i);
    }
    for (Index c = 0; step < iterations && c < clusters; ++c)
      for (Index s = 0; s < planes.len && !lists[at(c)].empty(); ++s) {
        Index ones = 0;
        for (const Index i : lists[at(c)]) ones += codes[at(i)][at(s)];
        centroids[at(c)][at(s)] = 2 * ones > std::ssize(lists[at(c)]);
      }
  }
  return lists;
}

inline std::vector<double> softmax_of(const std::vector<double>& logits) {
  double top = -INFINITY, total = 0;
  for (const double x : logits) top = std::fmax(top, x);
  std::vector<double> weights;
  for (const double x : logits) weights.push_back(std::exp(x - top)), total += weights.back();
  for (double& w : weights) w /= total;
  return weights;
}

// keys: the top keys that members weigh again; 0: none.
inline Array clustered(const Array& q, const Array& k, const Array& v, const Array& planes,
                       Index clusters, Index iterations, Index keys,
                       const std::vector<Index>& lengths, const std::vector<Index>& rows = {}) {
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  Array out(q.batch, q.heads, q.len, q.dim);
  const double scale = 1 / std::sqrt(static_cast<double>(q.dim));
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = lengths.empty() ? q.len : lengths[at(b)];
      for (const auto& members : clusters_of(q, planes, b, h, valid, clusters, iterations)) {
        if (members.empty()) continue;
        std::vector<double> mean(at(q.dim)), logits;
        for (const Index i : members)
          for (Index c = 0; c < q.dim; ++c)
            mean[at(c)] += q.at(b, h, i, c) / static_cast<double>(members.size());
        for (Index j = 0; j < valid; ++j) logits.push_back(scale * dot(mean, k.row(b, h, j)));
        std::vector<Index> order(at(valid));
        std::iota(order.begin(), order.end(), Index{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](Index x, Index y) { return logits[at(x)] > logits[at(y)]; });
        order.resize(at(std::min(keys, valid)));
        const std::vector<double> weights = softmax_of(logits);
        for (const Index i : members) {
          if (!wanted[at(i)]) continue;
          std::vector<double> own = weights, again;
          double mass = 0;
          for (const Index j : order) {
            again.push_back(scale * dot(q.row(b, h, i), k.row(b, h, j)));
            mass += weights[at(j)];
          }
          again = softmax_of(again);
          for (std::size_t s = 0; s < order.size(); ++s) own[at(order[s])] = mass * again[s];
          for (Index j = 0; j < valid; ++j)
            add_times(own[at(j)], v.line(b, h, j), out.line(b, h, i), q.dim);
        }
      }
    }
  return out;
}

}  // namespace oracle
