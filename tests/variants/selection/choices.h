// What tests of selection share: which keys each query sees, as lists, with the margin of the
// choice and attention along such lists. Double precision, nothing of the library's references.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::choices {

using oracle::Array;
using Lists = std::vector<std::vector<int64_t>>;  // of (batch entry, head, query)

struct Choice {
  Lists seen;
  // The least distance of a score that is taken from one that is not.
  double margin = std::numeric_limits<double>::infinity();

  const std::vector<int64_t>& of(const Array& q, int64_t b, int64_t h, int64_t i) const {
    return seen[static_cast<size_t>((b * q.heads + h) * q.len + i)];
  }
};

// The first keys that a query may see.
inline int64_t visible(int64_t i, int64_t q_len, int64_t kv_len, bool causal,
                       const std::vector<int64_t>& lengths, int64_t b) {
  const int64_t all = lengths.empty() ? kv_len : lengths[static_cast<size_t>(b)];
  return causal ? std::clamp<int64_t>(i + kv_len - q_len + 1, 0, all) : all;
}

// The `keep` places of the largest scores by repeated search, the first of equal ones.
inline std::vector<int64_t> best(const std::vector<double>& scores, int64_t keep, double& margin) {
  std::vector<bool> taken(scores.size());
  std::vector<int64_t> places;
  double last = 0;
  for (int64_t e = 0; e < std::min(keep, std::ssize(scores)); ++e) {
    size_t top = scores.size();
    for (size_t j = 0; j < scores.size(); ++j)
      if (!taken[j] && (top == scores.size() || scores[j] > scores[top])) top = j;
    taken[top] = true;
    last = scores[top];
    places.push_back(static_cast<int64_t>(top));
  }
  for (size_t j = 0; j < scores.size() && keep > 0; ++j)
    if (!taken[j]) margin = std::min(margin, last - scores[j]);
  std::sort(places.begin(), places.end());
  return places;
}

inline double product(const Array& q, const Array& k, int64_t b, int64_t h, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < q.dim; ++c) sum += q.at(b, h, i, c) * k.at(b, h, j, c);
  return sum;
}

// Softmax attention of each query along its list, scaled by 1/√dim.
inline Array attend(const Array& q, const Array& k, const Array& v, const Lists& seen) {
  Array out(q.batch, q.heads, q.len, v.dim);
  size_t row = 0;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i, ++row) {
        std::vector<double> logits;
        double top = -INFINITY, total = 0;
        for (const int64_t j : seen[row]) {
          logits.push_back(product(q, k, b, h, i, j) / std::sqrt(static_cast<double>(q.dim)));
          top = std::max(top, logits.back());
        }
        for (double& logit : logits) total += logit = std::exp(logit - top);
        for (size_t e = 0; e < logits.size(); ++e)
          for (int64_t c = 0; c < v.dim; ++c)
            out.at(b, h, i, c) += logits[e] / total * v.at(b, h, seen[row][e], c);
      }
  return out;
}

// Inputs of few values, so that scores tie, but for the values.
inline Tensor coarse(const Shape& shape, const char* name) {
  const Tensor x = bridge::normal(shape, name);
  for (int64_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<real>(std::clamp(std::round(static_cast<double>(x[i])), -1.0, 1.0));
  return x;
}

inline std::unique_ptr<Attention> build(const std::string& name, const Shape& q, bool causal,
                                        const std::map<std::string, ParamValue>& params) {
  return find_variant(name).build({q[1], q[3], q[2], causal, 3, {}}, params);
}

inline Tensor forward(const Attention& attention, const Tensor& q, const Tensor& k, const Tensor& v,
                      const std::vector<int64_t>& lengths = {},
                      const std::vector<Tensor>& gates = {}) {
  const NoGrad no_grad;
  return attention
      .forward(Var(q), Var(k), Var(v), {attention.config().causal, lengths}, leaves_of(gates))
      .value();
}

inline Tensor rows(const Tensor& x, int64_t begin, int64_t end) {
  const NoGrad no_grad;
  return slice(Var(x), 2, begin, end).value().clone();
}

inline std::vector<Tensor> rows(const std::vector<Tensor>& all, int64_t begin, int64_t end) {
  std::vector<Tensor> some;
  for (const Tensor& x : all) some.push_back(rows(x, begin, end));
  return some;
}

// Later keys, values, queries and gates move: the earlier rows keep their bits.
inline void expect_future_is_unseen(const Attention& attention, int64_t n,
                                    const std::vector<int64_t>& borders,
                                    std::vector<Tensor> gates = {}) {
  const int64_t heads = attention.config().heads, dim = attention.config().head_dim;
  const Shape shape{1, heads, n, dim};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const Tensor base = forward(attention, q, k, v, {}, gates);
  for (const int64_t border : borders) {
    std::vector<Tensor> moved = {q.clone(), k.clone(), v.clone()};
    for (const Tensor& gate : gates) moved.push_back(gate.clone());
    for (const Tensor& x : moved)
      for (int64_t i = 0; i < x.size(); ++i)
        if (i / x.dim(3) % n >= border) x[i] = real(7) * x[(i * 31 + 5) % x.size()] + real(3);
    const Tensor other =
        forward(attention, moved[0], moved[1], moved[2], {}, {moved.begin() + 3, moved.end()});
    EXPECT_TRUE(bridge::same_bits(rows(other, 0, border), rows(base, 0, border))) << border;
  }
}

// Decode steps after a prefill against the causal forward, with `group` query heads a key head.
inline void expect_decodes(const Attention& attention, const Tensor& q, const Tensor& k,
                           const Tensor& v, int64_t prefill,
                           const std::vector<Tensor>& gates = {}) {
  const int64_t group = q.dim(1) / k.dim(1), n = q.dim(2), dim = q.dim(3);
  Tensor all;
  {
    const NoGrad no_grad;
    all = forward(attention, q, repeat_heads(Var(k), group).value(),
                  repeat_heads(Var(v), group).value(), {}, gates);
  }
  const auto decoder = attention.decoder(q.dim(0), n, k.dim(1));
  decoder->extend(rows(k, 0, prefill), rows(v, 0, prefill), rows(q, 0, prefill),
                  rows(gates, 0, prefill));
  const Tensor out(q.shape().with(2, 1));
  for (int64_t i = prefill; i < n; ++i) {
    decoder->step(rows(q, i, i + 1), rows(k, i, i + 1), rows(v, i, i + 1), out,
                  rows(gates, i, i + 1));
    for (int64_t at = 0; at < out.size(); ++at)
      ASSERT_NEAR(out[at], all[(at / dim * n + i) * dim + at % dim], 300 * kEpsilon)
          << "position " << i << " head " << at / dim;
  }
}

}  // namespace attn::choices
