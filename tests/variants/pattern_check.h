// How a variant that sees a pattern of keys is compared with the oracle: forward and gradients,
// with and without causality and padding (NaN), and decoding against the causal forward.
#pragma once

#include <algorithm>

#include "variants/reference/patterns.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::bridge {

using Given = std::map<std::string, ParamValue>;
// allows(b, h, i, j), beside causality and lengths
using Allows = std::function<bool(int64_t, int64_t, int64_t, int64_t)>;

inline Allows everywhere(oracle::Pattern pattern) {
  return [pattern](int64_t, int64_t, int64_t i, int64_t j) { return pattern(i, j); };
}

inline std::unique_ptr<Attention> build(const std::string& name, const Given& given, int64_t n,
                                        bool causal, uint64_t seed = 3, int64_t dim = 5) {
  return find_variant(name).build({2, dim, n, causal, seed, {}}, given);
}

inline void expect_pattern(const std::string& name, const Given& given, int64_t n, const Mask& mask,
                           const Allows& allows, int64_t dim = 5) {
  SCOPED_TRACE(testing::Message() << name << " " << n << (mask.causal ? " causal" : "")
                                  << (mask.kv_lengths.empty() ? "" : " padded"));
  const Shape shape{2, 2, n, dim};
  const std::vector<Tensor> inputs = {normal(shape, "q"), normal(shape, "k"), normal(shape, "v")};
  for (const size_t which : {1u, 2u}) fill_padding(inputs[which], mask.kv_lengths, kNaN);
  const Var q(inputs[0], true), k(inputs[1], true), v(inputs[2], true);
  const Var out = build(name, given, n, mask.causal, 3, dim)->forward(q, k, v, mask);
  const oracle::Visibility seen{mask.causal, mask.kv_lengths, -1, allows};
  const Twin twin = [&](const std::vector<oracle::Array>& x) {
    return oracle::softmax_attention(x[0], x[1], x[2], seen);
  };
  const oracle::Array want = twin({array_of(inputs[0]), array_of(inputs[1]), array_of(inputs[2])});
  EXPECT_LE(relative_error(out.value(), want.x), 40 * kEpsilon);
  const Tensor seed = normal(shape, "seed");
  out.backward(seed);
  expect_gradients(inputs, {q.grad(), k.grad(), v.grad()}, seed, twin);
}

// Lengths around the borders of a pattern, causal or not, padded or not.
inline void expect_pattern_everywhere(const std::string& name, const Given& given,
                                      const Allows& allows, bool also_causal = true) {
  for (const int64_t n : {1, 7, 37, 64})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        if (causal && !also_causal) continue;
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {n / 2, n - n / 8};
        expect_pattern(name, given, n, mask, allows);
      }
}

inline void expect_decoding(const std::string& name, const Given& given, int64_t n) {
  SCOPED_TRACE(testing::Message() << name << " decodes " << n);
  const auto attention = build(name, given, n, true);
  const Shape shape{2, 2, n, 5}, one{2, 2, 1, 5};
  const std::vector<Tensor> x = {normal(shape, "q"), normal(shape, "k"), normal(shape, "v")};
  const NoGrad no_grad;
  const Tensor all = attention->forward(Var(x[0]), Var(x[1]), Var(x[2]), {true, {}}).value();
  const auto decoder = attention->decoder(2, n);
  EXPECT_EQ(static_cast<double>(decoder->state_bytes()),
            attention->cost({2, 2, n, n, 5, true}).state_bytes);
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Tensor> at;
    for (const Tensor& t : {x[0], x[1], x[2], all}) {
      at.emplace_back(one);
      for (int64_t c = 0; c < one.size(); ++c) at.back()[c] = t[(c / 5 * n + i) * 5 + c % 5];
    }
    const Tensor out(one);
    decoder->step(at[0], at[1], at[2], out);
    EXPECT_TRUE(relative_error(out, array_of(at[3]).x) <= 40 * kEpsilon) << "position " << i;
  }
}

// weights(b, h, i, j) of all-zero queries: one over the number of keys seen, however often a key is
// listed. `dim` is the variant's head_dim: each forward reads off so many columns.
inline Tensor even_weights(const Attention& attention, int64_t n, const Mask& mask,
                           int64_t dim = 5) {
  const NoGrad no_grad;
  const Tensor result = Tensor::zeros({2, 2, n, n});
  const Tensor zeros = Tensor::zeros({2, 2, n, dim});
  for (int64_t from = 0; from < n; from += dim) {
    const Tensor v = Tensor::zeros({2, 2, n, dim});
    const int64_t to = std::min(from + dim, n);
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t j = from; j < to; ++j) v[(head * n + j) * dim + j - from] = 1;
    const Tensor out = attention.forward(Var(zeros), Var(zeros), Var(v), mask).value();
    for (int64_t row = 0; row < 4 * n; ++row)
      for (int64_t j = from; j < to; ++j) result[row * n + j] = out[row * dim + j - from];
  }
  return result;
}

}  // namespace attn::bridge
