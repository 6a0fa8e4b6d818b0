// Locality-sensitive attention written out from Kitaev et al. 2020, eqs. 2-6: the sets P_i of each
// round as lists, each round's own softmax, and their union. O(rounds·n²·d) in double.
#pragma once

#include <algorithm>

#include "variants/reference/attention.h"

namespace oracle {

// bucket(b, h, round, i)
using Buckets = std::function<Index(Index b, Index h, Index round, Index i)>;

struct Hashing {
  Index rounds = 1, chunk = 1;
  Buckets bucket;
};

// argmax of [x·R, -x·R] for `first` directions, then for `second`; rotations [1, heads, rounds ·
// (first + second), dim].
inline Index hash(Row x, const Array& rotations, Index head, Index round, Index first,
                  Index second) {
  const auto half = [&](Index from, Index count) {
    Index best = 0;
    double most = -INFINITY;
    for (Index side = 0; side < 2; ++side)
      for (Index j = 0; j < count; ++j) {
        const double score = (side == 0 ? 1 : -1) *
                             dot(x, rotations.row(0, head, round * (first + second) + from + j));
        if (score > most) most = score, best = side * count + j;
      }
    return best;
  };
  return second == 0 ? half(0, first) : half(0, first) * 2 * second + half(first, second);
}

// The buckets of all rows of q; one_bucket: nothing is hashed.
inline Hashing hashing(const Array& q, const Array& rotations, Index rounds, Index chunk,
                       Index first, Index second, bool one_bucket) {
  std::vector<Index> buckets;
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index round = 0; round < rounds; ++round)
        for (Index i = 0; i < q.len; ++i)
          buckets.push_back(one_bucket ? 0
                                       : hash(q.row(b, h, i), rotations, h, round, first, second));
  return {rounds, chunk, [=, heads = q.heads, len = q.len](Index b, Index h, Index round, Index i) {
            return buckets[static_cast<std::size_t>(((b * heads + h) * rounds + round) * len + i)];
          }};
}

// P of a round for one head: which keys each query may see there.
inline std::vector<std::vector<Index>> sets_of(const Hashing& hashing, Index b, Index h,
                                               Index round, Index valid, bool causal,
                                               const std::vector<bool>& wanted) {
  std::vector<Index> order;
  for (Index i = 0; i < valid; ++i) order.push_back(i);
  const auto bucket = [&](Index i) { return hashing.bucket(b, h, round, i); };
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return bucket(i) < bucket(j); });
  std::vector<std::vector<Index>> sets(static_cast<std::size_t>(valid));
  for (Index s = 0; s < valid; ++s)
    for (Index t = 0; t < valid; ++t) {
      if (!wanted[static_cast<std::size_t>(order[static_cast<std::size_t>(s)])]) break;
      const Index i = order[static_cast<std::size_t>(s)], j = order[static_cast<std::size_t>(t)];
      const Index apart = s / hashing.chunk - t / hashing.chunk;
      const bool near = causal ? t < s && s - t <= hashing.chunk : apart == 0 || apart == 1;
      if (near && i != j && bucket(i) == bucket(j)) sets[static_cast<std::size_t>(i)].push_back(j);
    }
  return sets;
}

inline std::vector<double> unit(Row x) {
  std::vector<double> y(x.begin(), x.end());
  const double size = std::sqrt(dot(x, x) + 1e-6 * static_cast<double>(x.size()));
  for (double& value : y) value /= size;
  return y;
}

inline Array reformer(const Array& q, const Array& v, const Hashing& hashing, const Visibility& m,
                      double scale = 1) {
  Array out(q.batch, q.heads, q.len, q.dim);
  const std::vector<bool> wanted = wanted_of(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      std::vector<std::vector<std::vector<Index>>> rounds;
      for (Index r = 0; r < hashing.rounds; ++r)
        rounds.push_back(sets_of(hashing, b, h, r, valid, m.causal, wanted));
      for (Index i = 0; i < valid; ++i) {
        if (!wanted[static_cast<std::size_t>(i)]) continue;
        double total = 0;  // Σ_r exp(z^r)
        for (const auto& sets : rounds)
          for (const Index j : sets[static_cast<std::size_t>(i)]) {
            double times = 0;  // N_ij
            for (const auto& other : rounds) {
              const auto& set = other[static_cast<std::size_t>(i)];
              times += static_cast<double>(std::count(set.begin(), set.end(), j));
            }
            const double weight =
                std::exp(scale * dot(q.row(b, h, i), unit(q.row(b, h, j))) - std::log(times));
            total += weight;
            add_times(weight, v.line(b, h, j), out.line(b, h, i), q.dim);
          }
        for (Index c = 0; c < q.dim; ++c)
          out.at(b, h, i, c) = total > 0 ? out.at(b, h, i, c) / total : v.at(b, h, i, c);
      }
    }
  return out;
}

// Long Range Arena's: sorted positions in `chunks` chunks; each round shows a query all keys of its
// own chunk and of the one before, where the last one is before the first.
inline Array reformer_lra(const Array& q, const Array& v, const Hashing& hashing, Index chunks,
                          const Visibility& m) {
  Array out(q.batch, q.heads, q.len, q.dim);
  const std::vector<bool> wanted = wanted_of(m.rows, q.len);
  const double scale = std::sqrt(static_cast<double>(q.dim));
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      const Index chunk = std::max<Index>(1, (valid + chunks - 1) / chunks);
      const Index count = (valid + chunk - 1) / chunk;
      std::vector<std::vector<Index>> seen(static_cast<std::size_t>(valid));
      for (Index round = 0; round < hashing.rounds; ++round) {
        std::vector<Index> order;
        for (Index i = 0; i < valid; ++i) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) {
          return hashing.bucket(b, h, round, i) < hashing.bucket(b, h, round, j);
        });
        for (Index s = 0; s < valid; ++s)
          for (Index t = 0; t < valid; ++t) {
            if (!wanted[static_cast<std::size_t>(order[static_cast<std::size_t>(s)])]) break;
            const Index mine = s / chunk, theirs = t / chunk, before = (mine + count - 1) % count;
            if (theirs == mine || theirs == before)
              seen[static_cast<std::size_t>(order[static_cast<std::size_t>(s)])].push_back(
                  order[static_cast<std::size_t>(t)]);
          }
      }
      for (Index i = 0; i < valid; ++i) {
        const std::vector<Index>& keys = seen[static_cast<std::size_t>(i)];
        double top = -INFINITY, total = 0;
        std::vector<double> logits;
        for (const Index j : keys) {
          logits.push_back(scale * dot(q.row(b, h, i), q.row(b, h, j)));
          top = std::fmax(top, logits.back());
        }
        for (double& logit : logits) total += logit = std::exp(logit - top);
        for (std::size_t s = 0; s < keys.size(); ++s)
          for (Index c = 0; c < q.dim; ++c)
            out.at(b, h, i, c) += logits[s] / total * v.at(b, h, keys[s], c);
      }
    }
  return out;
}

}  // namespace oracle
