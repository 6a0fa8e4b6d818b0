// Attention through learned rows, the slow, obvious way: luna, latent and induced in double.
#pragma once

#include <vector>

#include "variants/reference/units.h"

namespace oracle {

// The rows of a weight [1, heads, m, dim] for each batch entry.
inline Array for_each_entry(const Array& rows, Index batch) {
  Array all(batch, rows.heads, rows.len, rows.dim);
  for (std::size_t i = 0; i < all.x.size(); ++i) all.x[i] = rows.x[i % rows.x.size()];
  return all;
}

// x [batch, heads, len, dim] times w [1, heads, dim, dim], head by head.
inline Array times_heads(const Array& x, const Array& w) {
  Array out(x.batch, x.heads, x.len, w.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i)
        for (Index c = 0; c < x.dim; ++c)
          add_times(x.at(b, h, i, c), w.line(0, h, c), out.line(b, h, i), w.dim);
  return out;
}

inline Array sum_of(Array a, const Array& b) {
  for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] += b.x[i];
  return a;
}

inline Array luna(const Array& q, const Array& k, const Array& v, const Array& rows,
                  const std::vector<Index>& lengths, const std::vector<Index>& wanted = {}) {
  const Array p = for_each_entry(rows, k.batch);
  const Visibility valid{false, lengths};
  return softmax_attention(q, softmax_attention(p, k, k, valid), softmax_attention(p, k, v, valid),
                           {.rows = wanted});
}

// Weights log2(1 + 2^(p·k_j/√d)) of each row p in the place of the first softmax, and means over
// the positions so far: O(n²·rows) for each head.
inline Array causal_luna(const Array& q, const Array& k, const Array& v, const Array& rows,
                         const std::vector<Index>& lengths, const std::vector<Index>& wanted = {}) {
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  const std::vector<bool> asked = wanted_of(wanted, q.len);
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      const Index valid = lengths.empty() ? k.len : lengths[static_cast<std::size_t>(b)];
      const auto weight = [&](Index j, Index row) {
        return std::log2(1 + std::exp2(tau * dot(rows.row(0, h, row), k.row(b, h, j))));
      };
      std::vector<std::vector<double>> weights;  // of each key
      for (Index j = 0; j < valid; ++j) {
        weights.emplace_back();
        for (Index row = 0; row < rows.len; ++row) weights.back().push_back(weight(j, row));
      }
      for (Index i = 0; i < q.len; ++i) {
        const Index seen = std::min(i + 1, valid);
        if (!asked[static_cast<std::size_t>(i)] || seen == 0) continue;
        std::vector<double> answers(static_cast<std::size_t>(rows.len));
        for (Index j = 0; j < seen; ++j)
          add_times(tau * dot(q.row(b, h, i), k.row(b, h, j)) / static_cast<double>(seen),
                    weights[static_cast<std::size_t>(j)].data(), answers.data(), rows.len);
        double top = -INFINITY, total = 0;
        for (const double x : answers) top = std::fmax(top, x);
        for (double& x : answers) total += x = std::exp(x - top);
        for (Index j = 0; j < seen; ++j) {
          double read = 0;
          for (Index row = 0; row < rows.len; ++row)
            read += answers[static_cast<std::size_t>(row)] / total *
                    weights[static_cast<std::size_t>(j)][static_cast<std::size_t>(row)];
          add_times(read / static_cast<double>(seen), v.line(b, h, j), out.line(b, h, i), v.dim);
        }
      }
    }
  return out;
}

// w: rows, then q, k and v of each layer.
inline Array latent(const Array& q, const Array& k, const Array& v, const std::vector<Array>& w,
                    Index layers, const std::vector<Index>& lengths,
                    const std::vector<Index>& wanted = {}) {
  Array z = softmax_attention(for_each_entry(w[0], k.batch), k, v, {false, lengths});
  std::size_t next = 1;
  for (Index layer = 0; layer < layers; ++layer, next += 3)
    z = sum_of(z, softmax_attention(times_heads(z, w[next]), times_heads(z, w[next + 1]),
                                    times_heads(z, w[next + 2]), {}));
  return softmax_attention(q, z, z, {.rows = wanted});
}

// Rows [batch, 1, len, width] times w plus a bias.
inline Array affine(const Array& x, const Array& w, const Array* bias) {
  Array out(x.batch, 1, x.len, w.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index i = 0; i < x.len; ++i) {
      const std::vector<double> sums = times(x.row(b, 0, i), w);
      for (Index j = 0; j < w.dim; ++j)
        out.at(b, 0, i, j) = sums[static_cast<std::size_t>(j)] + (bias ? bias->at(0, 0, 0, j) : 0);
    }
  return out;
}

inline Array normalised_rows(Array x, const Array& gain, const Array& shift) {
  for (Index b = 0; b < x.batch; ++b)
    for (Index i = 0; i < x.len; ++i) {
      const Row row = x.row(b, 0, i);
      const std::vector<double> y = normalised({row.begin(), row.end()}, gain, shift);
      for (Index c = 0; c < x.dim; ++c) x.at(b, 0, i, c) = y[static_cast<std::size_t>(c)];
    }
  return x;
}

// Ma et al. 2021, section 3. w: gain and shift of what was received, or the rows of a first layer,
// which receives nothing; then matrices and biases of the queries that pack, of what is packed, of
// queries, of keys and of the output.
struct LunaLayer {
  Array out, handed;
};
inline LunaLayer luna_layer(Array x, const Array& received, const std::vector<Array>& w,
                            Index heads, const std::vector<Index>& lengths) {
  for (Index b = 0; b < x.batch && !lengths.empty(); ++b)  // padding, which may be NaN
    for (Index i = lengths[static_cast<std::size_t>(b)]; i < x.len; ++i)
      for (Index c = 0; c < x.dim; ++c) x.at(b, 0, i, c) = 0;
  const bool is_first = received.x.empty();
  const Array packing =
      is_first ? for_each_entry(w[0], x.batch) : normalised_rows(received, w[0], w[1]);
  const Array* const of = &w[is_first ? 1 : 2];
  const Array keys = split(affine(x, of[2], &of[3]), heads);
  const Array packed = merged(softmax_attention(split(affine(packing, of[0], &of[1]), heads), keys,
                                                keys, {false, lengths}));
  const Array read = split(affine(packed, of[6], &of[7]), heads);
  const Array found =
      merged(softmax_attention(split(affine(x, of[4], &of[5]), heads), read, read, {}));
  return {affine(found, of[8], &of[9]), sum_of(packing, packed)};
}

// MAB of Lee et al. 2019, eqs. 6 and 7. w: q, q_bias, k, v, v_bias, out, out_bias and, with norm,
// gain and shift twice.
inline Array attention_block(const Array& q, const Array& k, const Array* w, Index heads, bool norm,
                             const std::vector<Index>& lengths) {
  const Array projected = affine(q, w[0], &w[1]);
  const double scale = 1 / std::sqrt(static_cast<double>(q.dim));
  const Array read =
      merged(softmax_attention(split(projected, heads), split(affine(k, w[2], nullptr), heads),
                               split(affine(k, w[3], &w[4]), heads), {false, lengths}, scale));
  Array sum = sum_of(projected, read);
  if (norm) sum = normalised_rows(sum, w[7], w[8]);
  Array hidden = affine(sum, w[5], &w[6]);
  for (double& value : hidden.x) value = std::fmax(0.0, value);
  sum = sum_of(sum, hidden);
  return norm ? normalised_rows(sum, w[9], w[10]) : sum;
}

// w: the points, then the two blocks.
inline Array induced(Array x, const std::vector<Array>& w, Index heads, bool norm,
                     const std::vector<Index>& lengths) {
  const auto clear = [&](Array& rows) {  // padding, which may be NaN
    for (Index b = 0; b < rows.batch && !lengths.empty(); ++b)
      for (Index i = lengths[static_cast<std::size_t>(b)]; i < rows.len; ++i)
        for (Index c = 0; c < rows.dim; ++c) rows.at(b, 0, i, c) = 0;
  };
  clear(x);
  const std::size_t each = (w.size() - 1) / 2;
  const Array points = for_each_entry(w[0], x.batch);
  const Array summary = attention_block(points, x, &w[1], heads, norm, lengths);
  Array out = attention_block(x, summary, &w[1 + each], heads, norm, {});
  clear(out);
  return out;
}

}  // namespace oracle
