// Attention the slow, obvious way: double precision, one sum after the other, nothing shared with
// the library. O(batch·heads·q_len·kv_len·features·dim): for a few hundred positions.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace oracle {

using Index = std::int64_t;
using Row = std::span<const double>;

struct Array {  // [batch, heads, len, dim]
  Index batch = 0, heads = 0, len = 0, dim = 0;
  std::vector<double> x;
  Array() = default;
  Array(Index b, Index h, Index n, Index d)
      : batch(b), heads(h), len(n), dim(d), x(static_cast<std::size_t>(b * h * n * d), 0.0) {}
  double& at(Index b, Index h, Index i, Index c) {
    return x[static_cast<std::size_t>(((b * heads + h) * len + i) * dim + c)];
  }
  double at(Index b, Index h, Index i, Index c) const {
    return const_cast<Array*>(this)->at(b, h, i, c);
  }
  Row row(Index b, Index h, Index i) const {
    return Row(x).subspan(static_cast<std::size_t>(((b * heads + h) * len + i) * dim),
                          static_cast<std::size_t>(dim));
  }
  double* line(Index b, Index h, Index i) { return x.data() + ((b * heads + h) * len + i) * dim; }
  const double* line(Index b, Index h, Index i) const {
    return x.data() + ((b * heads + h) * len + i) * dim;
  }
};

inline Array reshaped(const Array& a, Index b, Index h, Index n, Index d) {
  Array result(b, h, n, d);
  result.x = a.x;
  return result;
}
// The rows of all matrices one below the other.
inline Array flat(const Array& a) { return reshaped(a, 1, 1, a.batch * a.heads * a.len, a.dim); }

struct Visibility {
  bool causal = false;
  std::vector<Index> lengths = {};
  Index window = -1;
  // And what else is asked; empty: all.
  std::function<bool(Index b, Index h, Index i, Index j)> allows = {};
  // The queries whose outputs are wanted, ascending; empty: all. The other outputs are zeros.
  std::vector<Index> rows = {};
};

// The wanted of `len` queries.
inline std::vector<Index> wanted_rows(const std::vector<Index>& rows, Index len) {
  if (!rows.empty()) return rows;
  std::vector<Index> all(static_cast<std::size_t>(len));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

inline bool sees(const Visibility& m, Index b, Index i, Index j, Index q_len, Index kv_len) {
  if (!m.lengths.empty() && j >= m.lengths[static_cast<std::size_t>(b)]) return false;
  const Index position = i + kv_len - q_len;
  if (m.causal && j > position) return false;
  return m.window < 0 || (j >= position - m.window && j <= position + m.window);
}

// Whether each of `len` queries is wanted.
inline std::vector<bool> wanted_of(const std::vector<Index>& rows, Index len) {
  std::vector<bool> wanted(static_cast<std::size_t>(len), rows.empty());
  for (const Index row : rows) wanted[static_cast<std::size_t>(row)] = true;
  return wanted;
}

// to += factor · from, of `count` numbers.
inline void add_times(double factor, const double* from, double* to, Index count) {
  for (Index c = 0; c < count; ++c) to[c] += factor * from[c];
}

// f(b, h, i, j) of a visible pair.
using OfPair = std::function<double(Index b, Index h, Index i, Index j)>;
// The unnormalised weight of a visible pair, as a logarithm.
using LogWeight = OfPair;

inline Array average(const Array& q, const Array& v, const Visibility& m, const LogWeight& weight) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows) {
        std::vector<std::pair<Index, double>> seen;
        double top = -INFINITY, total = 0;
        for (Index j = 0; j < v.len; ++j)
          if (sees(m, b, i, j, q.len, v.len) && (!m.allows || m.allows(b, h, i, j))) {
            seen.emplace_back(j, weight(b, h, i, j));
            top = std::fmax(top, seen.back().second);
          }
        for (auto& [j, w] : seen) total += w = std::exp(w - top);
        for (const auto& [j, w] : seen) {
          add_times(w / total, v.line(b, h, j), out.line(b, h, i), v.dim);
        }
      }
  return out;
}

// Σ_j weight(b, h, i, j)·v_j over the visible keys; nothing is normalised.
inline Array weighted_sum(const Array& q, const Array& v, const Visibility& m,
                          const OfPair& weight) {
  Array out(q.batch, q.heads, q.len, v.dim);
  const std::vector<Index> rows = wanted_rows(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : rows)
        for (Index j = 0; j < v.len; ++j) {
          if (!sees(m, b, i, j, q.len, v.len) || (m.allows && !m.allows(b, h, i, j))) continue;
          add_times(weight(b, h, i, j), v.line(b, h, j), out.line(b, h, i), v.dim);
        }
  return out;
}

// Sums side by side: one alone would wait for each addition.
inline double dot(Row a, Row b) {
  constexpr std::size_t kSums = 16;
  double sums[kSums] = {}, rest = 0;
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums)
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += a[i + s] * b[i + s];
  for (; i < a.size(); ++i) rest += a[i] * b[i];
  for (const double sum : sums) rest += sum;
  return rest;
}

inline Array softmax_attention(const Array& q, const Array& k, const Array& v, const Visibility& m,
                               double scale = 0) {
  const double tau = scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(q.dim));
  return average(q, v, m, [&](Index b, Index h, Index i, Index j) {
    return tau * dot(q.row(b, h, i), k.row(b, h, j));
  });
}

// logs of the features of one row of head h
using LogFeatures = std::function<std::vector<double>(Index h, Row x)>;

// The features of a row over exp(top), so that none overflows.
struct Features {
  double top;
  std::vector<double> logs, over_top;
};

// Those of rows that are not wanted are left out.
inline std::vector<Features> features_of(const Array& x, const LogFeatures& phi,
                                         const std::vector<bool>& wanted) {
  std::vector<Features> rows;
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i) {
        if (!wanted[static_cast<std::size_t>(i)]) {
          rows.emplace_back();
          continue;
        }
        Features row{-INFINITY, phi(h, x.row(b, h, i)), {}};
        for (const double log : row.logs) row.top = std::fmax(row.top, log);
        for (const double log : row.logs) row.over_top.push_back(std::exp(log - row.top));
        rows.push_back(std::move(row));
      }
  return rows;
}

// log Σ_f exp(a_f + c_f)
inline double log_product(const Features& a, const Features& c) {
  const double product = dot(a.over_top, c.over_top);
  if (product > 1e-200) return a.top + c.top + std::log(product);
  double top = -INFINITY, total = 0;  // the largest features are not the same: all are tiny
  for (std::size_t f = 0; f < a.logs.size(); ++f) top = std::fmax(top, a.logs[f] + c.logs[f]);
  for (std::size_t f = 0; f < a.logs.size(); ++f) total += std::exp(a.logs[f] + c.logs[f] - top);
  return top + std::log(total);
}

inline Array kernel_attention(const Array& q, const Array& k, const Array& v, const Visibility& m,
                              const LogFeatures& phi) {
  const std::vector<Features> of_q = features_of(q, phi, wanted_of(m.rows, q.len)),
                              of_k = features_of(k, phi, wanted_of({}, k.len));
  return average(q, v, m, [&](Index b, Index h, Index i, Index j) {
    return log_product(of_q[static_cast<std::size_t>((b * q.heads + h) * q.len + i)],
                       of_k[static_cast<std::size_t>((b * k.heads + h) * k.len + j)]);
  });
}

inline LogFeatures elu_plus_one() {
  return [](Index, Row x) {
    std::vector<double> r;
    for (const double value : x) r.push_back(value > 0 ? std::log(value + 1) : value);
    return r;
  };
}

// omega [1, heads or 1, features, dim]
inline LogFeatures positive_random(const Array& omega) {
  return [&omega](Index h, Row x) {
    std::vector<double> y(x.begin(), x.end()), r;
    const double root = std::pow(static_cast<double>(x.size()), 0.25);
    for (double& value : y) value /= root;
    const double half_norm = dot(y, y) / 2;
    for (Index f = 0; f < omega.len; ++f)
      r.push_back(dot(omega.row(0, omega.heads == 1 ? 0 : h, f), y) - half_norm);
    return r;
  };
}

inline LogFeatures relu_random(const Array& omega, double floor) {
  return [&omega, floor](Index h, Row x) {
    std::vector<double> r;
    for (Index f = 0; f < omega.len; ++f)
      r.push_back(
          std::log(std::fmax(0.0, dot(omega.row(0, omega.heads == 1 ? 0 : h, f), x)) + floor));
    return r;
  };
}

// Long Range Arena's: the inputs themselves in the place of projections.
inline LogFeatures relu_plain(double floor) {
  return [floor](Index, Row x) {
    std::vector<double> r;
    for (const double value : x) r.push_back(std::log(std::fmax(0.0, value) + floor));
    return r;
  };
}

// projections [1, heads or 1, rank, max_len]; padded rows count as zeros.
inline Array project(const Array& projection, const Array& x, const Visibility& m) {
  Array out(x.batch, x.heads, projection.len, x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index r = 0; r < projection.len; ++r)
        for (Index j = 0; j < x.len; ++j)
          if (m.lengths.empty() || j < m.lengths[static_cast<std::size_t>(b)])
            add_times(projection.at(0, projection.heads == 1 ? 0 : h, r, j), x.line(b, h, j),
                      out.line(b, h, r), x.dim);
  return out;
}

inline Array linformer(const Array& q, const Array& k, const Array& v, const Array& project_k,
                       const Array& project_v, const Visibility& m) {
  return softmax_attention(q, project(project_k, k, m), project(project_v, v, m), {.rows = m.rows});
}

}  // namespace oracle
