// Decoding of exact attention with a cache that forgets, the slow way: after each step the list of
// held positions is scored anew and cut to the budget; weights are made of the list, in double.
// O(n²·dim) a head for a prompt whose weights are summed up, else O(budget·dim) a step.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

struct EvictionRule {
  std::string method;                        // as the parameter `evict`
  double budget = 1;                         // positions; below 1: a share of those so far
  bool at_prompt = false;                    // forgets at the end of a prompt alone
  std::function<double(Index, Index)> draw;  // of a head of keys and a position; method random

  Index positions(Index so_far) const {
    if (budget >= 1) return static_cast<Index>(budget);
    return std::max<Index>(1, static_cast<Index>(budget * static_cast<double>(so_far) + 1e-9));
  }
};

// The query heads [first, last) of batch entry b that share one head of keys.
class EvictedHead {
 public:
  EvictedHead(const Array& q, const Array& k, Index b, Index first, Index last)
      : q_(q), k_(k), b_(b), first_(first), last_(last), sums_(std::size_t(k.len), 0.0) {}

  std::vector<Index> held;  // ascending

  // The softmax of query i of head h over the positions of `over`.
  std::vector<double> weights(Index h, Index i, const std::vector<Index>& over) const {
    std::vector<double> w;
    for (const Index j : over)
      w.push_back(dot(q_.row(b_, h, i), k_.row(b_, h, j)) / std::sqrt(double(q_.dim)));
    const double top = *std::max_element(w.begin(), w.end());
    double total = 0;
    for (double& x : w) total += x = std::exp(x - top);
    for (double& x : w) x /= total;
    return w;
  }
  // The same, added up over the query heads.
  std::vector<double> votes(Index i, const std::vector<Index>& over) const {
    std::vector<double> sum(over.size(), 0.0);
    for (Index h = first_; h < last_; ++h) {
      const std::vector<double> w = weights(h, i, over);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += w[c];
    }
    return sum;
  }
  void add_votes(Index i) {
    const std::vector<double> sum = votes(i, held);
    for (std::size_t c = 0; c < sum.size(); ++c) sums_[std::size_t(held[c])] += sum[c];
  }
  double sum_of(Index j) const { return sums_[std::size_t(j)]; }
  double squared_norm(Index j) const { return dot(k_.row(b_, first_, j), k_.row(b_, first_, j)); }
  // The votes of the queries of the prompt [begin, n), the last `window` of them, for each held
  // position before the window, smoothed over two neighbours on each side. The window stays.
  std::vector<double> observed(Index begin, Index n, Index window) const {
    std::vector<double> sum(held.size(), 0.0);
    for (Index i = std::max(begin, n - window); i < n; ++i) {
      std::vector<Index> visible;
      for (const Index j : held)
        if (j <= i) visible.push_back(j);
      const std::vector<double> w = votes(i, visible);
      for (std::size_t c = 0; c < w.size(); ++c) sum[c] += w[c];
    }
    const Index before =
        Index(std::lower_bound(held.begin(), held.end(), n - window) - held.begin());
    std::vector<double> smooth(held.size(), std::numeric_limits<double>::infinity());
    for (Index c = 0; c < before; ++c) {
      smooth[std::size_t(c)] = 0;
      for (Index d = std::max<Index>(0, c - 2); d <= std::min(before - 1, c + 2); ++d)
        smooth[std::size_t(c)] += sum[std::size_t(d)];
    }
    return smooth;
  }
  // The best `count` positions stay; of equal ones, the later.
  void keep(const std::vector<double>& values, Index count) {
    std::vector<std::pair<double, Index>> ranked;
    for (std::size_t c = 0; c < held.size(); ++c) ranked.emplace_back(values[c], held[c]);
    std::sort(ranked.rbegin(), ranked.rend());
    held.clear();
    for (Index c = 0; c < std::min<Index>(count, Index(ranked.size())); ++c)
      held.push_back(ranked[std::size_t(c)].second);
    std::sort(held.begin(), held.end());
  }
  // Quest: the page of position i and those whose bound of q·k is highest, `pages` in all.
  std::vector<Index> chosen(Index h, Index i, Index pages, Index page) const {
    std::vector<std::pair<double, Index>> ranked;
    for (Index p = 0; p < i / page; ++p) {
      double bound = 0;
      for (Index c = 0; c < k_.dim; ++c) {
        double least = k_.at(b_, h, p * page, c), most = least;
        for (Index j = p * page; j < (p + 1) * page; ++j) {
          least = std::min(least, k_.at(b_, h, j, c));
          most = std::max(most, k_.at(b_, h, j, c));
        }
        bound += std::max(q_.at(b_, h, i, c) * least, q_.at(b_, h, i, c) * most);
      }
      ranked.emplace_back(bound, p);
    }
    std::sort(ranked.rbegin(), ranked.rend());
    ranked.resize(std::size_t(std::min<Index>(Index(ranked.size()), pages - 1)));
    ranked.emplace_back(0, i / page);
    std::vector<Index> positions;
    for (const auto& [bound, p] : ranked)
      for (Index j = p * page; j < std::min(i + 1, (p + 1) * page); ++j) positions.push_back(j);
    return positions;
  }

 private:
  const Array &q_, &k_;
  Index b_, first_, last_;
  std::vector<double> sums_;
};

class EvictedSequence {
 public:
  static constexpr Index kPage = 16, kSinks = 4, kWindow = 32;

  EvictedSequence(const Array& q, const Array& k, const Array& v, Index b, Index kv_heads,
                  const EvictionRule& rule)
      : v_(v), b_(b), group_(q.heads / kv_heads), rule_(rule) {
    for (Index g = 0; g < kv_heads; ++g) heads_.emplace_back(q, k, b, g * group_, (g + 1) * group_);
  }

  // Position i is one of a prompt.
  void append(Index i) {
    if (prompt_ < 0) prompt_ = i;
    for (EvictedHead& head : heads_) {
      head.held.push_back(i);
      if (rule_.method == "h2o") head.add_votes(i);
    }
  }
  // Position i is a step, whose answer is written where it is asked for.
  void step(Index i, bool is_asked, Array& out) {
    if (prompt_ >= 0) forget(i, true);
    prompt_ = -1;
    for (EvictedHead& head : heads_) head.held.push_back(i);
    for (Index h = 0; is_asked && h < out.heads; ++h) {
      const EvictedHead& head = heads_[std::size_t(h / group_)];
      const Index pages = std::max<Index>(1, rule_.positions(i + 1) / kPage);
      const std::vector<Index> seen =
          rule_.method == "quest" ? head.chosen(h, i, pages, kPage) : head.held;
      const std::vector<double> w = head.weights(h, i, seen);
      for (std::size_t c = 0; c < seen.size(); ++c)
        add_times(w[c], v_.line(b_, h, seen[c]), out.line(b_, h, i), v_.dim);
    }
    if (rule_.method == "h2o")
      for (EvictedHead& head : heads_) head.add_votes(i);
    if (!rule_.at_prompt && rule_.method != "snapkv") forget(i + 1, false);
  }

 private:
  // With n positions so far, the last of which has been answered.
  void forget(Index n, bool is_prompt) {
    const Index budget = rule_.positions(n);
    if (rule_.method == "quest" || Index(heads_[0].held.size()) <= budget) return;
    std::vector<double> of_all(heads_[0].held.size(), 0.0);  // TOVA: one choice for all heads
    if (rule_.method == "tova")
      for (EvictedHead& head : heads_) {
        const std::vector<double> w = head.votes(n - 1, head.held);
        for (std::size_t c = 0; c < w.size(); ++c) of_all[c] += w[c];
      }
    for (std::size_t g = 0; g < heads_.size(); ++g) {
      EvictedHead& head = heads_[g];
      std::vector<double> values = of_all;
      for (std::size_t c = 0; c < values.size(); ++c)
        values[c] = rule_.method == "tova" ? of_all[c] : value(g, head.held[c], n, budget);
      if (rule_.method == "snapkv" && is_prompt)
        values = head.observed(prompt_, n, std::min(kWindow, (budget + 1) / 2));
      head.keep(values, budget);
    }
  }
  double value(std::size_t g, Index j, Index n, Index budget) const {
    const double always = std::numeric_limits<double>::infinity();
    if (rule_.method == "sinks") return j < kSinks ? 1e18 * double(kSinks - j) : double(j);
    if (rule_.method == "random") return rule_.draw(b_ * Index(heads_.size()) + Index(g), j);
    if (rule_.method == "norm") return -heads_[g].squared_norm(j);
    if (rule_.method == "h2o") return j >= n - budget / 2 ? always : heads_[g].sum_of(j);
    return double(j);  // recent
  }

  const Array& v_;
  Index b_, group_;
  const EvictionRule& rule_;
  std::vector<EvictedHead> heads_;
  Index prompt_ = -1;  // where the prompt begins that has not ended yet
};

// The answers of the steps; q, k, v [batch, heads, len, dim], of which each heads / kv_heads share
// their keys. Only `rows` are asked for; empty: all.
inline Array evicted_attention(const Array& q, const Array& k, const Array& v,
                               const std::vector<bool>& steps, Index kv_heads,
                               const EvictionRule& rule, const std::vector<Index>& rows = {}) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<bool> wanted = wanted_of(rows, q.len);
  for (Index b = 0; b < q.batch; ++b) {
    EvictedSequence sequence(q, k, v, b, kv_heads, rule);
    for (Index i = 0; i < q.len; ++i)
      if (steps[std::size_t(i)])
        sequence.step(i, wanted[std::size_t(i)], out);
      else
        sequence.append(i);
  }
  return out;
}

}  // namespace oracle
