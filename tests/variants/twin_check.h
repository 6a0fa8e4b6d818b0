// One variant against its twin in tests/oracle: forward, and the gradients of queries, keys, values
// and learned weights, with NaN in the padding.
#pragma once

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::bridge {

struct TwinCase {
  std::string variant;
  std::map<std::string, ParamValue> params;
  AttentionShape shape;  // q_len = kv_len
  std::vector<int64_t> lengths = {};
  double scale = 1;                 // of the queries
  double step = 1e-4;               // of central differences
  double allowed = 200 * kEpsilon;  // error of the output
};

// x: q, k, v, then the weights in the order of Attention::weights(), as the oracle's arrays.
using Twins = std::function<oracle::Array(const std::vector<oracle::Array>& x)>;
// The twin of an attention with these queries, which may fix what gradients do not pass.
using MakeTwin = std::function<Twins(const Attention& attention, const Tensor& q)>;

inline void expect_twin(const TwinCase& c, const MakeTwin& make) {
  const AttentionShape& s = c.shape;
  const auto attention =
      find_variant(c.variant).build({s.heads, s.head_dim, s.kv_len + 3, s.causal, 3, {}}, c.params);
  const Shape shape{s.batch, s.heads, s.kv_len, s.head_dim};
  std::vector<Tensor> inputs = {normal(shape, "q", c.scale), normal(shape, "k"),
                                normal(shape, "v")};
  fill_padding(inputs[1], c.lengths, kNaN);
  fill_padding(inputs[2], c.lengths, kNaN);
  std::vector<Var> vars;
  for (const Tensor& t : inputs) vars.emplace_back(t, true);
  std::vector<oracle::Array> arrays;
  for (const Weight& weight : attention->weights()) {
    if (!weight.learned) continue;
    inputs.push_back(weight.value.value());
    vars.push_back(weight.value);
  }
  for (const Tensor& t : inputs) arrays.push_back(array_of(t));
  const Twins twin = make(*attention, inputs[0]);
  const Var out = attention->forward(vars[0], vars[1], vars[2], {s.causal, c.lengths});
  const oracle::Array want = twin(arrays);
  EXPECT_TRUE(relative_error(out.value(), want.x) <= c.allowed)
      << relative_error(out.value(), want.x);
  const Tensor seed = normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads;
  for (const Var& var : vars)
    grads.push_back(var.grad().defined() ? var.grad() : Tensor::zeros(var.shape()));
  expect_gradients(inputs, grads, seed, twin, c.step);
}

}  // namespace attn::bridge
