// A mixer of the catalog against its twin in the oracle: rows, and the gradients of x and of every
// weight, causal or not, padded with NaN, at odd lengths and several heads.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "variants/reference/mixers.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/mixer.h"
#include "variants/catalog.h"

namespace attn::mixers {

using Given = std::map<std::string, ParamValue>;

struct Case {
  int64_t batch, heads, len, head_dim;
  bool causal;
  std::vector<int64_t> lengths;
  Shape rows() const { return {batch, len, heads * head_dim}; }
  Mask mask() const { return {causal, lengths}; }
};

inline std::vector<Case> cases(bool causal) {
  return {{1, 1, 1, 4, causal, {}},
          {2, 3, 9, 2, causal, {}},
          {3, 1, 13, 5, causal, {13, 0, 4}},
          {2, 2, 37, 3, causal, {1, 30}},
          {1, 2, 401, 4, causal, {390}}};  // several tiles of rows
}

inline std::unique_ptr<Attention> build(const std::string& name, const Case& at,
                                        const Given& given) {
  return find_variant(name).build({.heads = at.heads,
                                   .head_dim = at.head_dim,
                                   .max_len = at.len,
                                   .causal = at.causal,
                                   .seed = 3,
                                   .params = {}},
                                  given);
}

// As the oracle takes weights: [1, 1, rows, columns].
inline Tensor flat(const Tensor& t) {
  const int64_t columns = t.dim(-1);
  return t.reshaped({1, 1, t.size() / columns, columns});
}
inline Tensor with_one_head(const Tensor& rows) {
  return rows.reshaped({rows.dim(0), 1, rows.dim(1), rows.dim(2)});
}

// Biases that are zeros would hide a missing one.
inline void draw_weights(const Attention& mixer) {
  for (const Weight& weight : mixer.weights())
    weight.value.set_value(Tensor::normal(weight.value.shape(), rng(7, weight.name), 0.4));
}

using Twin =
    std::function<oracle::Array(const oracle::Array& x, const std::vector<oracle::Array>& weights)>;

inline void expect_twin(const std::string& name, const Case& at, const Given& given,
                        const Twin& twin, double step = 1e-4) {
  SCOPED_TRACE(name + " of " + at.rows().str() + (at.causal ? ", causal" : ""));
  const auto attention = build(name, at, given);
  draw_weights(*attention);
  // Small enough that central differences through tanh of long sums hold.
  const Tensor rows = Tensor::normal(at.rows(), rng(11, "x"), 0.4);
  bridge::fill_padding(with_one_head(rows), at.lengths, bridge::kNaN);
  const Var x(rows, true);
  const Var out = as_mixer(*attention)->mix(x, at.mask());
  const Tensor seed = bridge::normal(at.rows(), "seed");
  out.backward(seed);
  std::vector<Tensor> inputs = {with_one_head(rows)}, grads = {with_one_head(x.grad())};
  for (const Weight& weight : attention->weights()) {
    inputs.push_back(flat(weight.value.value()));
    grads.push_back(flat(weight.value.grad()));
  }
  const auto all = [&](const std::vector<oracle::Array>& a) {
    return twin(a[0], {a.begin() + 1, a.end()});
  };
  std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
  EXPECT_LE(bridge::relative_error(out.value(), all(arrays).x), kIsDouble ? 1e-12 : 2e-6);
  bridge::expect_gradients(inputs, grads, with_one_head(seed), all, step);
}

// Rows [first, last) of entry b.
inline Tensor rows_of(const Tensor& t, int64_t b, int64_t first, int64_t last) {
  const int64_t width = t.dim(2);
  const Tensor part({1, last - first, width});
  std::copy_n(t.data() + (b * t.dim(1) + first) * width, part.size(), part.data());
  return part;
}

inline double distance(const Tensor& a, const Tensor& b) {
  return bridge::relative_error(a, bridge::array_of(b).x);
}

}  // namespace attn::mixers
