// Attention to keys that the data choose, written out: the choice as a list of indices for each
// query, sorted by score, then by place. Double precision, nothing shared with the library.
#pragma once

#include <algorithm>
#include <set>

#include "variants/reference/attention.h"
#include "variants/reference/mixers.h"

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

// The same of one indexer for all heads, whose rows are sums over heads: A [1, heads, d,
// index_heads·dim], B [1, heads, d, dim], C [1, heads, d, index_heads].
inline OfPair shared_lightning_scores(const Array& q, const Array& k, const Array& a,
                                      const Array& b, const Array& c, Index index_heads,
                                      Index dim) {
  // Heads side by side, of the inputs and of the weights: one head of heads·d.
  const auto stacked = [](const Array& w) { return reshaped(w, 1, 1, w.heads * w.len, w.dim); };
  const OfPair all =
      lightning_scores(merged(q), merged(k), stacked(a), stacked(b), stacked(c), index_heads, dim);
  return [all](Index e, Index, Index i, Index j) { return all(e, 0, i, j); };
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

// One row of the positions [begin, begin + size) of a head.
using OfBlock =
    std::function<std::vector<double>(const Array& x, Index b, Index h, Index begin, Index size)>;

// gelu((x + P)·U)·D of the positions side by side; w: P [size, dim], U [size·dim, hidden], D
// [hidden, dim].
inline OfBlock network_of_block(const Array* w) {
  return [w](const Array& x, Index b, Index h, Index begin, Index size) {
    const Array &position = w[0], &up = w[1], &down = w[2];
    std::vector<double> hidden(static_cast<std::size_t>(up.dim)),
        row(static_cast<std::size_t>(x.dim));
    for (Index t = 0; t < size; ++t)
      for (Index c = 0; c < x.dim; ++c)
        add_times(x.at(b, h, begin + t, c) + position.at(0, 0, t, c), up.line(0, 0, t * x.dim + c),
                  hidden.data(), up.dim);
    for (Index m = 0; m < up.dim; ++m) {
      const double z = hidden[static_cast<std::size_t>(m)];
      add_times(z * 0.5 * (1 + std::erf(z / std::sqrt(2.0))), down.line(0, 0, m), row.data(),
                x.dim);
    }
    return row;
  };
}

struct SparseBranches {
  Index block, blocks, shared, window;
  Index size, stride;    // of compressed blocks
  OfBlock keys, values;  // empty: means
};

// Σ of three branches times σ(gate): one row for each compressed block that has ended; the first
// block, the own one, the one before and those of the largest sums of the weights of these rows,
// each times the share of positions, in strides, that lie in the block, summed over `shared`
// neighbouring heads; the last `window` keys and the own one. Zeros from lengths[b] on.
inline Array native_sparse_attention(const Array& q, const Array& k, const Array& v,
                                     const Array& gates, const std::vector<Index>& lengths,
                                     const SparseBranches& s, const std::vector<Index>& rows = {}) {
  const auto valid = [&](Index b) {
    return lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
  };
  const Index rows_of_blocks = (q.len + s.stride - 1) / s.stride;
  Array keys(k.batch, k.heads, rows_of_blocks, k.dim),
      values(v.batch, v.heads, rows_of_blocks, v.dim);
  const auto compressed_row = [&](const OfBlock& by, const Array& x, Index b, Index h, Index c) {
    return by ? by(x, b, h, c * s.stride, s.size) : block_mean(x, b, h, c, s.size, valid(b));
  };
  for (Index b = 0; b < k.batch; ++b)
    for (Index h = 0; h < k.heads; ++h)
      for (Index c = 0; c * s.stride + s.size <= valid(b); ++c) {
        add_times(1, compressed_row(s.keys, k, b, h, c).data(), keys.line(b, h, c), k.dim);
        add_times(1, compressed_row(s.values, v, b, h, c).data(), values.line(b, h, c), v.dim);
      }
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  const auto ended = [&](Index b, Index i) {
    const Index past = std::min(i + 1, valid(b)) - s.size;
    return past < 0 ? 0 : past / s.stride + 1;
  };
  // Strides that compressed block c has in block `block`.
  const auto common = [&](Index c, Index block) {
    const Index begin = std::max(c * s.stride, block * s.block),
                end = std::min(c * s.stride + s.size, (block + 1) * s.block);
    return static_cast<double>(std::max<Index>(0, end - begin) / s.stride);
  };
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
          const auto logit = [&](Index c) {
            return tau * dot(q.row(b, head, i), keys.row(b, head, c));
          };
          for (Index c = 0; c < ended(b, i); ++c) top = std::fmax(top, logit(c));
          for (Index c = 0; c < ended(b, i); ++c) total += std::exp(logit(c) - top);
          for (auto& [score, block] : scores)
            for (Index c = 0; c < ended(b, i); ++c)
              if (common(c, block) > 0)
                score += common(c, block) * std::exp(logit(c) - top) / total;
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
