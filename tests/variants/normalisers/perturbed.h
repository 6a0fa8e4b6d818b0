// Variants against twins at weights that are not where they start: forward and gradients under
// masks and padding (NaN), decoding with keys of as many heads or fewer, and sums by threads.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::perturbed {

using Given = std::map<std::string, ParamValue>;
// Of q, k, v and the weights.
using Twin =
    std::function<oracle::Array(const std::vector<oracle::Array>&, const oracle::Visibility&)>;

// Each weight moved by N(0, 0.3²).
inline std::unique_ptr<Attention> build(const std::string& name, const Given& given,
                                        const AttentionConfig& config) {
  auto attention = find_variant(name).build(config, given);
  for (const Weight& weight : attention->weights()) {
    const Tensor moved = weight.value.value().clone();
    const Tensor by = Tensor::normal(moved.shape(), rng(7, weight.name), 0.3);
    for (int64_t i = 0; i < moved.size(); ++i) moved[i] += by[i];
    weight.value.set_value(moved);
  }
  return attention;
}

struct Sizes {
  int64_t q_len, kv_len, heads = 2, dim = 6;
};

inline void expect_twin(const std::string& name, const Given& given, const Sizes& s,
                        const Mask& mask, const Twin& twin, double scale = 1) {
  SCOPED_TRACE(testing::Message() << name << " " << s.q_len << "x" << s.kv_len << " causal "
                                  << mask.causal << " padded " << !mask.kv_lengths.empty());
  const auto attention = build(name, given, {s.heads, s.dim, s.kv_len, mask.causal, 3, {}});
  const oracle::Visibility seen{mask.causal, mask.kv_lengths};
  std::vector<Tensor> inputs = {bridge::normal({2, s.heads, s.q_len, s.dim}, "q", scale),
                                bridge::normal({2, s.heads, s.kv_len, s.dim}, "k", scale),
                                bridge::normal({2, s.heads, s.kv_len, s.dim}, "v")};
  for (const size_t which : {1, 2})
    bridge::fill_padding(inputs[which], mask.kv_lengths, bridge::kNaN);
  std::vector<Var> vars;
  for (const Tensor& t : inputs) vars.emplace_back(t, true);
  for (const Weight& weight : attention->weights()) {
    const Tensor value = weight.value.value();
    inputs.push_back(value.shape().rank() > 1 ? value : value.reshaped({1, value.size()}));
    vars.push_back(weight.value);
  }
  std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
  const Var out = attention->forward(vars[0], vars[1], vars[2], mask);
  const double error = bridge::relative_error(out.value(), twin(arrays, seen).x);
  EXPECT_LE(error, 200 * scale * kEpsilon);
  if (s.kv_len > 100) return;
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads = bridge::grads_of(vars);
  bridge::expect_gradients(
      inputs, grads, seed, [&](const std::vector<oracle::Array>& x) { return twin(x, seen); },
      1e-6);
}

// Lengths on both sides of a strip (6, 48) and of a piece of keys (384), without keys, and of 1.
inline void expect_twin_everywhere(const std::string& name, const Given& given, const Twin& twin,
                                   double scale = 1) {
  for (const bool causal : {false, true}) {
    for (const Sizes& s :
         {Sizes{1, 1}, Sizes{37, 37}, Sizes{5, 33}, Sizes{34, 9}, Sizes{49, 65, 3}})
      for (const bool padded : {false, true}) {
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {0, s.kv_len - s.kv_len / 4};
        expect_twin(name, given, s, mask, twin, scale);
      }
    expect_twin(name, given, {50, 390}, {causal, {390, 383}}, twin, scale);
  }
}

inline void expect_decoding(const std::string& name, const Given& given, int64_t kv_heads) {
  constexpr int64_t kLength = 140, kDim = 6, kHeads = 4;
  const auto attention = build(name, given, {kHeads, kDim, kLength, true, 3, {}});
  const NoGrad no_grad;
  const Tensor q = bridge::normal({2, kHeads, kLength, kDim}, "q"),
               k = bridge::normal({2, kv_heads, kLength, kDim}, "k"),
               v = bridge::normal({2, kv_heads, kLength, kDim}, "v");
  const auto repeated = [&](const Tensor& x) {
    const Tensor all({2, kHeads, kLength, kDim});
    for (int64_t h = 0; h < 2 * kHeads; ++h)
      std::copy_n(x.data() + h / (kHeads / kv_heads) * kLength * kDim, kLength * kDim,
                  all.data() + h * kLength * kDim);
    return all;
  };
  const auto rows = [&](const Tensor& t, int64_t from, int64_t to) {
    const Tensor part(t.shape().with(2, to - from));
    for (int64_t h = 0; h < t.dim(0) * t.dim(1); ++h)
      std::copy_n(t.data() + (h * kLength + from) * kDim, (to - from) * kDim,
                  part.data() + h * (to - from) * kDim);
    return part;
  };
  const Tensor want =
      attention->forward(Var(q), Var(repeated(k)), Var(repeated(v)), {.causal = true}).value();
  for (const int count : {1, 2}) {
    const ScopedThreads scoped(count);
    const auto decoder = attention->decoder(2, kLength, kv_heads);
    decoder->extend(rows(k, 0, 3), rows(v, 0, 3));
    for (int64_t i = 3; i < kLength; ++i) {
      const Tensor out({2, kHeads, 1, kDim});
      decoder->step(rows(q, i, i + 1), rows(k, i, i + 1), rows(v, i, i + 1), out);
      const double error = bridge::relative_error(out, bridge::array_of(rows(want, i, i + 1)).x);
      ASSERT_TRUE(error <= 100 * kEpsilon) << name << " position " << i << ": " << error;
    }
  }
}

// Gradients of inputs and weights by one, two and three threads, and the same bits twice.
inline void expect_gradients_by_threads(const std::string& name, const Given& given) {
  const auto attention = build(name, given, {2, 8, 300, true, 1, {}});
  const auto gradients = [&] {
    const Var q(bridge::normal({1, 2, 300, 8}, "q"), true),
        k(bridge::normal({1, 2, 300, 8}, "k"), true), v(bridge::normal({1, 2, 300, 8}, "v"), true);
    for (const Weight& weight : attention->weights()) weight.value.zero_grad();
    attention->forward(q, k, v, {.causal = true}).backward(bridge::normal(q.shape(), "seed"));
    std::vector<Tensor> all = {q.grad(), k.grad(), v.grad()};
    for (const Weight& weight : attention->weights()) all.push_back(weight.value.grad().clone());
    return all;
  };
  std::vector<Tensor> first;
  for (const int count : {1, 2, 3}) {
    const ScopedThreads scoped(count);
    const std::vector<Tensor> now = gradients(), again = gradients();
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_TRUE(bridge::same_bits(now[i], again[i])) << name << " gradient " << i;
      const oracle::Array want = bridge::array_of(
          first[i].shape().rank() > 1 ? first[i] : first[i].reshaped({1, first[i].size()}));
      EXPECT_LE(bridge::relative_error(now[i], want.x), 100 * kEpsilon)
          << name << " gradient " << i << " of " << count << " threads";
    }
  }
}

// A twin that makes the weights of a row of logits: to(z) of the visible keys.
using RowOf = std::function<std::vector<double>(const std::vector<double>& z)>;
inline oracle::Array by_rows(const std::vector<oracle::Array>& x, const oracle::Visibility& seen,
                             const RowOf& to) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  oracle::Array out(q.batch, q.heads, q.len, v.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        std::vector<int64_t> keys;
        std::vector<double> z;
        for (int64_t j = 0; j < k.len; ++j) {
          if (!oracle::sees(seen, b, i, j, q.len, k.len)) continue;
          double dot = 0;
          for (int64_t c = 0; c < q.dim; ++c) dot += q.at(b, h, i, c) * k.at(b, h, j, c);
          keys.push_back(j), z.push_back(dot / std::sqrt(static_cast<double>(q.dim)));
        }
        if (keys.empty()) continue;
        const std::vector<double> weights = to(z);
        for (size_t at = 0; at < keys.size(); ++at)
          for (int64_t c = 0; c < v.dim; ++c)
            out.at(b, h, i, c) += weights[at] * v.at(b, h, keys[at], c);
      }
  return out;
}

}  // namespace attn::perturbed
