// Sparse Sinkhorn attention written out from Tay et al. 2020, section 3: block sums, balancing by
// division, sorted keys and values row by row, one softmax over both blocks; and what Long Range
// Arena's code computes in its place. In double.
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

struct SinkhornSettings {
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
                      const SinkhornSettings& s) {
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
    add_times(weight, x.line(b, h, j * block + r), row.data(), x.dim);
  }
  for (double& value : row) value /= total;
  return r < valid ? row : std::vector<double>();
}

inline std::vector<double> copy_of(Row row) { return {row.begin(), row.end()}; }

// Adds to `out` what query row i answers from these keys and values under a softmax of their own.
inline void add_answer(Row query, const std::vector<std::vector<double>>& keys,
                       const std::vector<std::vector<double>>& values, Array& out, Index b, Index h,
                       Index i) {
  std::vector<double> weights;
  double total = 0;
  for (const std::vector<double>& key : keys) {
    weights.push_back(std::exp(dot(query, key) / std::sqrt(static_cast<double>(out.dim))));
    total += weights.back();
  }
  for (std::size_t j = 0; j < keys.size(); ++j)
    add_times(weights[j] / total, values[j].data(), out.line(b, h, i), out.dim);
}

inline Array sinkhorn(const Array& q, const Array& k, const Array& v, const Array& weight,
                      const SinkhornSettings& s, const Visibility& m) {
  Array out(q.batch, q.heads, q.len, q.dim);
  const std::vector<Index> wanted = wanted_rows(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      const Matrix sort = sorting(q, weight, b, h, valid, s);
      for (const Index i : wanted) {
        const Index own = i / s.block;
        if (own * s.block >= valid) continue;  // a block of padding sees nothing
        std::vector<std::vector<double>> keys, values;
        for (Index r = 0; r < s.block; ++r) {
          if (own * s.block + r < valid) {
            keys.push_back(copy_of(k.row(b, h, own * s.block + r)));
            values.push_back(copy_of(v.row(b, h, own * s.block + r)));
          }
          std::vector<double> key = sorted_row(k, sort, b, h, valid, s.block, own, r);
          if (key.empty()) continue;
          keys.push_back(std::move(key));
          values.push_back(sorted_row(v, sort, b, h, valid, s.block, own, r));
        }
        add_answer(q.row(b, h, i), keys, values, out, b, h, i);
      }
    }
  return out;
}

// Long Range Arena's: positions are written row by row into a matrix whose columns are at most
// `block` high. A query attends to the keys of its column. In a second softmax it attends to rows,
// each the sum of its entries: the code multiplies each column by a row of the sorting matrix,
// which sums to one, and adds all columns.
inline Array sinkhorn_lra(const Array& q, const Array& k, const Array& v, Index block,
                          const Visibility& m) {
  Array out(q.batch, q.heads, q.len, q.dim);
  const std::vector<Index> wanted = wanted_rows(m.rows, q.len);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = m.lengths.empty() ? q.len : m.lengths[static_cast<std::size_t>(b)];
      if (valid == 0) continue;
      const Index columns = (valid + block - 1) / block, rows = (valid + columns - 1) / columns;
      std::vector<std::vector<double>> row_keys(static_cast<std::size_t>(rows)), row_values;
      for (auto& row : row_keys) row.assign(static_cast<std::size_t>(q.dim), 0.0);
      row_values = row_keys;
      for (Index j = 0; j < valid; ++j)
        for (Index c = 0; c < q.dim; ++c) {
          const auto row = static_cast<std::size_t>(j / columns), at = static_cast<std::size_t>(c);
          row_keys[row][at] += k.at(b, h, j, c);
          row_values[row][at] += v.at(b, h, j, c);
        }
      for (const Index i : wanted) {
        std::vector<std::vector<double>> keys, values;
        for (Index j = i % columns; j < valid; j += columns) {
          keys.push_back(copy_of(k.row(b, h, j)));
          values.push_back(copy_of(v.row(b, h, j)));
        }
        add_answer(q.row(b, h, i), keys, values, out, b, h, i);
        add_answer(q.row(b, h, i), row_keys, row_values, out, b, h, i);
      }
    }
  return out;
}

}  // namespace oracle
