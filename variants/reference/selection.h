// Attention to keys that the data choose, written out: the choice as a list of indices for each
// query, sorted by score, then by place. Double precision, nothing shared with the library.
#pragma once

#include <algorithm>
#include <set>

#include "variants/reference/attention.h"

namespace oracle {

// The places of the `keep` largest of some (score, place) pairs; of equal scores the lower place.
inline std::set<Index> largest(std::vector<std::pair<double, Index>> scores, Index keep) {
  std::sort(scores.begin(), scores.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::set<Index> places;
  for (Index e = 0; e < std::min<Index>(keep, static_cast<Index>(scores.size())); ++e)
    places.insert(scores[static_cast<std::size_t>(e)].second);
  return places;
}

// Softmax attention of each query to the `keep` visible keys of the largest scores.
inline Array top_attention(const Array& q, const Array& k, const Array& v, const Visibility& m,
                           Index keep, const OfPair& score) {
  std::vector<std::set<Index>> chosen;
  const std::vector<bool> wanted = wanted_of(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < q.len; ++i) {
        std::vector<std::pair<double, Index>> scores;
        if (!wanted[static_cast<std::size_t>(i)]) {
          chosen.emplace_back();
          continue;
        }
        for (Index j = 0; j < k.len; ++j)
          if (sees(m, b, i, j, q.len, k.len) && (!m.allows || m.allows(b, h, i, j)))
            scores.emplace_back(score(b, h, i, j), j);
        chosen.push_back(largest(std::move(scores), keep));
      }
  Visibility kept = m;
  kept.allows = [&](Index b, Index h, Index i, Index j) {
    return chosen[static_cast<std::size_t>((b * q.heads + h) * q.len + i)].contains(j);
  };
  return softmax_attention(q, k, v, kept);
}

// I(i, j) = Σ_c (1 + q_i·C_c)·relu((q_i·A_c)·LayerNorm(k_j·B)) of each head's A [1, heads, d,
// index_heads·dim] and C [1, heads, d, index_heads], and B [1, 1, d, dim] of all.
inline OfPair lightning_scores(const Array& q, const Array& k, const Array& a, const Array& b_all,
                               const Array& c_all, Index index_heads, Index dim) {
  Array queries(q.batch, q.heads, q.len, index_heads * dim), keys(k.batch, k.heads, k.len, dim),
      weights(q.batch, q.heads, q.len, index_heads);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      for (Index i = 0; i < q.len; ++i)
        for (Index x = 0; x < q.dim; ++x) {
          add_times(q.at(b, h, i, x), a.line(0, h, x), queries.line(b, h, i), index_heads * dim);
          add_times(q.at(b, h, i, x), c_all.line(0, h, x), weights.line(b, h, i), index_heads);
        }
      for (Index j = 0; j < k.len; ++j) {
        double mean = 0, square = 0;
        for (Index x = 0; x < k.dim; ++x)
          add_times(k.at(b, h, j, x), b_all.line(0, 0, x), keys.line(b, h, j), dim);
        for (Index m = 0; m < dim; ++m) mean += keys.at(b, h, j, m) / static_cast<double>(dim);
        for (Index m = 0; m < dim; ++m)
          square += std::pow(keys.at(b, h, j, m) - mean, 2) / static_cast<double>(dim);
        for (Index m = 0; m < dim; ++m)
          keys.at(b, h, j, m) = (keys.at(b, h, j, m) - mean) / std::sqrt(square + 1e-5);
      }
    }
  return [=](Index b, Index h, Index i, Index j) {
    double score = 0;
    for (Index c = 0; c < index_heads; ++c) {
      const Row query = queries.row(b, h, i).subspan(static_cast<std::size_t>(c * dim),
                                                     static_cast<std::size_t>(dim));
      const double product = dot(query, keys.row(b, h, j));
      score += (1 + weights.at(b, h, i, c)) * std::fmax(product, 0.0);
    }
    return score;
  };
}

// The mean of the valid rows of a block.
inline std::vector<double> block_mean(const Array& x, Index b, Index h, Index block, Index size,
                                      Index valid) {
  std::vector<double> mean(static_cast<std::size_t>(x.dim));
  const Index begin = block * size, end = std::min(valid, begin + size);
  for (Index j = begin; j < end; ++j) add_times(1, x.line(b, h, j), mean.data(), x.dim);
  for (double& value : mean) value /= static_cast<double>(end - begin);
  return mean;
}

// Causal softmax attention of each query to its own block of keys, and to those that `choose`
// lists.
inline Array chosen_blocks(const Array& q, const Array& k, const Array& v,
                           const std::vector<Index>& lengths, Index size,
                           const std::function<std::set<Index>(Index b, Index h, Index i)>& choose,
                           const std::vector<Index>& rows = {}) {
  std::vector<std::set<Index>> chosen;
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < q.len; ++i)
        chosen.push_back(wanted[static_cast<std::size_t>(i)] ? choose(b, h, i) : std::set<Index>());
  return softmax_attention(q, k, v,
                           {true, lengths, -1,
                            [&](Index b, Index h, Index i, Index j) {
                              const auto& seen =
                                  chosen[static_cast<std::size_t>((b * q.heads + h) * q.len + i)];
                              return j / size == i / size || seen.contains(j / size);
                            },
                            rows});
}

struct SparseBranches {
  Index block, blocks, shared, window;
};

// Σ of three branches times σ(gate): the means of whole blocks that have ended; the first block,
// the own one, the one before and those of the largest weights among the means, summed over
// `shared` neighbouring heads; the last `window` keys and the own one. Zeros from lengths[b] on.
inline Array native_sparse_attention(const Array& q, const Array& k, const Array& v,
                                     const Array& gates, const std::vector<Index>& lengths,
                                     const SparseBranches& s, const std::vector<Index>& rows = {}) {
  const auto valid = [&](Index b) {
    return lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
  };
  const Index blocks = (q.len + s.block - 1) / s.block;
  Array keys(k.batch, k.heads, blocks, k.dim), values(v.batch, v.heads, blocks, v.dim);
  for (Index b = 0; b < k.batch; ++b)
    for (Index h = 0; h < k.heads; ++h)
      for (Index block = 0; (block + 1) * s.block <= valid(b); ++block) {
        add_times(1, block_mean(k, b, h, block, s.block, valid(b)).data(), keys.line(b, h, block),
                  k.dim);
        add_times(1, block_mean(v, b, h, block, s.block, valid(b)).data(), values.line(b, h, block),
                  v.dim);
      }
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  const auto ended = [&](Index b, Index i) { return std::min(i + 1, valid(b)) / s.block; };
  const Array compressed =
      softmax_attention(q, keys, values,
                        {false,
                         {},
                         -1,
                         [&](Index b, Index, Index i, Index block) { return block < ended(b, i); },
                         rows},
                        tau);
  const Array selected = chosen_blocks(
      q, k, v, lengths, s.block,
      [&](Index b, Index h, Index i) {
        const Index own = i / s.block, first = h / s.shared * s.shared;
        std::set<Index> all;
        if (own < s.blocks) {
          for (Index block = 0; block < own; ++block) all.insert(block);
          return all;
        }
        std::vector<std::pair<double, Index>> scores;
        for (Index block = 1; block + 1 < own; ++block) scores.emplace_back(0.0, block);
        for (Index head = first; head < first + s.shared; ++head) {
          double top = -INFINITY, total = 0;
          const auto logit = [&](Index block) {
            return tau * dot(q.row(b, head, i), keys.row(b, head, block));
          };
          for (Index block = 0; block < ended(b, i); ++block) top = std::fmax(top, logit(block));
          for (Index block = 0; block < ended(b, i); ++block) total += std::exp(logit(block) - top);
          for (auto& [score, block] : scores)
            if (block < ended(b, i)) score += std::exp(logit(block) - top) / total;
        }
        all = largest(std::move(scores), s.blocks - 3);
        all.insert(0), all.insert(own - 1);
        return all;
      },
      rows);
  const Array window = softmax_attention(q, k, v, {true, lengths, s.window, {}, rows});
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < valid(b); ++i)
        for (Index c = 0; c < q.dim; ++c) {
          const auto gate = [&](Index branch) {
            return 1 / (1 + std::exp(-gates.at(b, h, i, branch)));
          };
          out.at(b, h, i, c) = gate(0) * selected.at(b, h, i, c) + gate(1) * window.at(b, h, i, c) +
                               gate(2) * compressed.at(b, h, i, c);
        }
  return out;
}

}  // namespace oracle
