// The blocks of a Transformer written out in double loops, on the weights of a model by their
// names: what tests of layers and of whole models compare with. Slow, and independent of the ops.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace attn::written_out {

using Rows = std::vector<std::vector<double>>;
using Named = std::map<std::string, Tensor>;
using Sees = std::function<bool(size_t query, size_t key)>;

inline double at(const Tensor& t, size_t i) {
  return static_cast<double>(t[static_cast<int64_t>(i)]);
}

inline Rows times(const Rows& x, const Tensor& w, const Tensor* bias = nullptr) {
  const auto columns = static_cast<size_t>(w.dim(1));
  Rows y;
  for (const auto& row : x) {
    auto& out = y.emplace_back(columns);
    for (size_t c = 0; c < columns; ++c) {
      out[c] = bias ? at(*bias, c) : 0;
      for (size_t r = 0; r < row.size(); ++r) out[c] += row[r] * at(w, r * columns + c);
    }
  }
  return y;
}

inline Rows normed(Rows x, const Named& w, const std::string& norm) {
  const Tensor &gain = w.at(norm + ".gain"), &bias = w.at(norm + ".bias");
  for (auto& row : x) {
    double mean = 0, variance = 0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    for (const double value : row)
      variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = (row[c] - mean) / std::sqrt(variance + 1e-5) * at(gain, c) + at(bias, c);
  }
  return x;
}

inline Rows plus(Rows x, const Rows& y) {
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t c = 0; c < x[i].size(); ++c) x[i][c] += y[i][c];
  return x;
}

// Queries from x, keys and values from `memory`, weights named `prefix` + "W_q" and so on. Head h
// reads columns h·dim .. (h+1)·dim of q, k and v and writes the same columns.
inline Rows attended(const Rows& x, const Rows& memory, const Named& w, const std::string& prefix,
                     size_t heads, const Sees& sees) {
  const Rows q = times(x, w.at(prefix + "W_q")), k = times(memory, w.at(prefix + "W_k")),
             v = times(memory, w.at(prefix + "W_v"));
  const size_t width = q[0].size(), dim = width / heads;
  Rows out(x.size(), std::vector<double>(width, 0.0));
  for (size_t first = 0; first < width; first += dim)
    for (size_t i = 0; i < x.size(); ++i) {
      std::vector<double> weights(memory.size());
      double total = 0;
      for (size_t j = 0; j < memory.size(); ++j) {
        if (!sees(i, j)) continue;
        double logit = 0;
        for (size_t c = first; c < first + dim; ++c) logit += q[i][c] * k[j][c];
        total += weights[j] = std::exp(logit / std::sqrt(static_cast<double>(dim)));
      }
      for (size_t j = 0; j < memory.size(); ++j)
        for (size_t c = first; c < first + dim; ++c) out[i][c] += weights[j] / total * v[j][c];
    }
  return times(out, w.at(prefix + "W_o"));
}

inline Rows fed_forward(const Rows& x, const Named& w, const std::string& prefix) {
  const std::string block = prefix + "feed_forward.";
  Rows hidden = times(x, w.at(block + "hidden"), &w.at(block + "hidden_bias"));
  for (auto& row : hidden)
    for (double& value : row) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
  return times(hidden, w.at(block + "output"), &w.at(block + "output_bias"));
}

// The weights whose names begin with `prefix`, by the rest of their names.
inline Named part(const Named& all, const std::string& prefix) {
  Named named;
  for (const auto& [name, value] : all)
    if (name.starts_with(prefix)) named[name.substr(prefix.size())] = value;
  return named;
}

// Tokens and learned positions.
inline Rows embedded(const Named& w, const std::vector<int32_t>& tokens) {
  const Tensor &table = w.at("input.tokens"), &positions = w.at("input.positions");
  const auto width = static_cast<size_t>(table.dim(1));
  Rows x;
  for (size_t i = 0; i < tokens.size(); ++i)
    for (size_t c = 0; c < width; ++c) {
      if (c == 0) x.emplace_back();
      x[i].push_back(at(table, static_cast<size_t>(tokens[i]) * width + c) +
                     at(positions, i * width + c));
    }
  return x;
}

// One block with its residual and norm; the block sees what came through the norm.
template <class Block>
Rows around(const Rows& x, const Named& w, const std::string& norm, bool pre, const Block& block) {
  return pre ? plus(x, block(normed(x, w, norm))) : normed(plus(x, block(x)), w, norm);
}

}  // namespace attn::written_out
