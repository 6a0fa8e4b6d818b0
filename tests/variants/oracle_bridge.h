// Between tensors and the oracle's arrays, and how a gradient is judged: its product with random
// directions against central differences of the oracle, in double whatever the build.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/autograd/var.h"
#include "variants/catalog.h"
#include "variants/reference/attention.h"

namespace attn::bridge {

inline oracle::Array array_of(const Tensor& t) {
  const int rank = t.shape().rank();
  oracle::Array a(rank == 4 ? t.dim(0) : 1, rank > 2 ? t.dim(-3) : 1, t.dim(-2), t.dim(-1));
  for (int64_t i = 0; i < t.size(); ++i) a.x[static_cast<size_t>(i)] = static_cast<double>(t[i]);
  return a;
}

inline std::vector<oracle::Array> arrays_of(const std::vector<Tensor>& tensors) {
  std::vector<oracle::Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(array_of(t));
  return arrays;
}

inline std::vector<Tensor> grads_of(const std::vector<Var>& vars) {
  std::vector<Tensor> grads;
  for (const Var& var : vars) grads.push_back(var.grad());
  return grads;
}

inline double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

inline double relative_error(const Tensor& got, const std::vector<double>& want) {
  std::vector<double> difference;
  for (int64_t i = 0; i < got.size(); ++i)
    difference.push_back(static_cast<double>(got[i]) - want[static_cast<size_t>(i)]);
  return norm(difference) / (norm(want) + 1e-30);
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return a.shape() == b.shape();
}

// Inputs of N(0, scale²): the same numbers in float and double up to rounding.
inline Tensor normal(Shape shape, const char* name, double scale = 1) {
  return Tensor::normal(shape, rng(11, name), scale);
}

// Rows at or beyond lengths[b] of x = [batch, heads, len, dim] become `value`.
inline void fill_padding(const Tensor& x, const std::vector<int64_t>& lengths, real value) {
  if (lengths.empty()) return;
  const int64_t heads = x.dim(1), len = x.dim(2), dim = x.dim(3);
  for (int64_t i = 0; i < x.size(); ++i)
    if (i / dim % len >= lengths[static_cast<size_t>(i / dim / len / heads)]) x[i] = value;
}
inline constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();

using Twin = std::function<oracle::Array(const std::vector<oracle::Array>& inputs)>;

// inputs: the tensors that `twin` takes, grads: what backward(seed) left for them. Each input is
// moved along its own random direction; central differences of step 1e-4 are exact to 1e-8 here,
// and a function with kinks asks for a step that crosses none.
inline void expect_gradients(const std::vector<Tensor>& inputs, const std::vector<Tensor>& grads,
                             const Tensor& seed, const Twin& twin, double size_of_step = 1e-4) {
  for (size_t which = 0; which < inputs.size(); ++which) {
    std::vector<oracle::Array> up, down;
    for (const Tensor& t : inputs) up.push_back(array_of(t)), down.push_back(array_of(t));
    Rng random = rng(5, "direction", which);
    double got = 0, size = 0, want = 0;
    for (int64_t i = 0; i < inputs[which].size(); ++i) {
      const double step = random.normal(), slope = static_cast<double>(grads[which][i]);
      ASSERT_TRUE(std::isfinite(slope)) << "input " << which << " entry " << i;
      if (!std::isfinite(static_cast<double>(inputs[which][i]))) {  // garbage in padding
        ASSERT_EQ(slope, 0) << "input " << which << " entry " << i;
        continue;
      }
      up[which].x[static_cast<size_t>(i)] += size_of_step * step;
      down[which].x[static_cast<size_t>(i)] -= size_of_step * step;
      got += slope * step;
      size += slope * slope;
    }
    const oracle::Array high = twin(up), low = twin(down);
    for (int64_t i = 0; i < seed.size(); ++i)
      want += static_cast<double>(seed[i]) *
              (high.x[static_cast<size_t>(i)] - low.x[static_cast<size_t>(i)]) / (2 * size_of_step);
    // got has the standard deviation sqrt(size): a wrong gradient is off by about that much.
    // Gradients that cancel to 0 leave rounding of the size of the seed.
    EXPECT_TRUE(std::abs(got - want) <=
                (kIsDouble ? 1e-6 : 2e-4) * (std::sqrt(size) + 0.01 * norm(array_of(seed).x)))
        << "input " << which << ": " << got << " against " << want;
  }
}

// One variant against its twin in tests/oracle: forward, and the gradients of queries, keys, values
// and learned weights, with NaN in the padding.

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
  for (const Weight& weight : attention->weights()) {
    if (!weight.learned) continue;
    inputs.push_back(weight.value.value());
    vars.push_back(weight.value);
  }
  const Twins twin = make(*attention, inputs[0]);
  const Var out = attention->forward(vars[0], vars[1], vars[2], {s.causal, c.lengths});
  const oracle::Array want = twin(arrays_of(inputs));
  EXPECT_LE(relative_error(out.value(), want.x), c.allowed);
  const Tensor seed = normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads;
  for (const Var& var : vars)
    grads.push_back(var.grad().defined() ? var.grad() : Tensor::zeros(var.shape()));
  expect_gradients(inputs, grads, seed, twin, c.step);
}

}  // namespace attn::bridge
