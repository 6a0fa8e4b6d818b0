// Sparse Sinkhorn attention written out from Tay et al. 2020, section 3: block sums, balancing by
// division, sorted keys and values row by row, one softmax over both blocks. In double.
#pragma once

#include "tests/oracle/attention_oracle.h"

namespace oracle {

struct Sinkhorn {
  Index block = 1, iterations = 1;
  double temperature = 1;
};

using Matrix = std::vector<std::vector<double>>;

inline void divide_by_sums(Matrix& s) {
  for (std::size_t j = 0; j < s.size(); ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < s.size(); ++i) sum += s[i][j];
    for (std::size_t i = 0; i < s.size(); ++i) s[i][j] /= sum;
  }
  for (std::vector<double>& row : s) {
    double sum = 0;
    for (const double value : row) sum += value;
    for (double& value : row) value /= sum;
  }
}

// weight [1, heads, dim, blocks]
inline Matrix sorting(const Array& q, const Array& weight, Index b, Index h, Index valid,
                      const Sinkhorn& s) {
  const Index blocks = (valid + s.block - 1) / s.block;
  Matrix scores(static_cast<std::size_t>(blocks),
                std::vector<double>(static_cast<std::size_t>(blocks), 0.0));
  double top = -INFINITY;
  for (Index i = 0; i < blocks; ++i)
    for (Index c = 0; c < q.dim; ++c) {
      double sum = 0;
      for (Index r = i * s.block; r < std::min(valid, (i + 1) * s.block); ++r)
        sum += q.at(b, h, r, c);
      for (Index j = 0; j < blocks; ++j)
        scores[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
            std::fmax(0.0, sum) * weight.at(0, h, c, j) / s.temperature;
    }
  for (const auto& row : scores)
    for (const double value : row) top = std::fmax(top, value);
  for (auto& row : scores)
    for (double& value : row) value = std::exp(value - top);
  for (Index n = 0; n < s.iterations; ++n) divide_by_sums(scores);
  return scores;
}

// Row r of what is sorted to block i: the average of row r of those blocks that have it. Empty:
// none has.
inline std::vector<double> sorted_row(const Array& x, const Matrix& sort, Index b, Index h,
                                      Index valid, Index block, Index i, Index r) {
  std::vector<double> row(static_cast<std::size_t>(x.dim), 0.0);
  double total = 0;
  for (Index j = 0; j * block + r < valid; ++j) {
    const double weight = sort[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    total += weight;
    for (Index c = 0; c < x.dim; ++c)
      row[static_cast<std::size_t>(c)] += weight * x.at(b, h, j * block + r, c);
  }
  for (double& value : row) value /= total;
  return r < valid ? row : std::vector<double>();
}

inline Array sinkhorn(const Array& q, const Array& k, const Array& v, const Array& weight,
                      const Sinkhorn& s, const Visibility& m) {
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      const Matrix sort = sorting(q, weight, b, h, valid, s);
      for (Index i = 0; i < q.len; ++i) {
        const Index own = i / s.block;
        if (own * s.block >= valid) continue;  // a block of padding sees nothing
        std::vector<std::vector<double>> keys, values;
        for (Index r = 0; r < s.block; ++r) {
          if (own * s.block + r < valid) {
            keys.push_back(k.row(b, h, own * s.block + r));
            values.push_back(v.row(b, h, own * s.block + r));
          }
          if (sorted_row(k, sort, b, h, valid, s.block, own, r).empty()) continue;
          keys.push_back(sorted_row(k, sort, b, h, valid, s.block, own, r));
          values.push_back(sorted_row(v, sort, b, h, valid, s.block, own, r));
        }
        double total = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
          const double weight_of =
              std::exp(dot(q.row(b, h, i), keys[j]) / std::sqrt(static_cast<double>(q.dim)));
          total += weight_of;
          for (Index c = 0; c < q.dim; ++c)
            out.at(b, h, i, c) += weight_of * values[j][static_cast<std::size_t>(c)];
        }
        for (Index c = 0; c < q.dim; ++c) out.at(b, h, i, c) /= total;
      }
    }
  return out;
}

}  // namespace oracle
