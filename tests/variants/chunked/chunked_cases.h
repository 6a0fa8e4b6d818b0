// Problems of linear attention with decay and of the delta rule, run by the library and by the
// plain recurrence in double.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/variants/oracle_bridge.h"
#include "variants/chunked/chunked_attention.h"
#include "variants/reference/states.h"

namespace attn::bridge {

enum class Rule { plain, bonus, delta, removal };

struct ChunkedCase {
  Decay decay = Decay::none;
  Rule rule = Rule::plain;
  int64_t batch = 1, heads = 1, len = 1, key_dim = 1, dim = 1;
  double decay_scale = 1;  // log-decays are -scale·|N(0, 1)|
  std::vector<int64_t> lengths = {};
};

inline std::vector<ChunkedCase> every_rule(const ChunkedCase& sizes) {
  std::vector<ChunkedCase> cases;
  for (const Decay decay : {Decay::none, Decay::head, Decay::step, Decay::channel})
    for (const Rule rule : {Rule::plain, Rule::bonus, Rule::delta, Rule::removal}) {
      if (rule == Rule::removal && (decay == Decay::head || decay == Decay::step)) continue;
      cases.push_back(sizes);
      cases.back().decay = decay, cases.back().rule = rule;
    }
  return cases;
}

inline std::string text_of(const ChunkedCase& c) {
  const char* const decays[] = {"no decay", "of heads", "of steps", "of channels"};
  const char* const rules[] = {"plain", "bonus", "delta", "removal"};
  return std::string(decays[static_cast<int>(c.decay)]) + ", " + rules[static_cast<int>(c.rule)] +
         ", " + std::to_string(c.len) + " positions";
}

// q, k, v, and what the case has of the others; undefined elsewhere. Keys have norms of about 1,
// since the delta rule diverges for β·|k|² > 2.
struct ChunkedTensors {
  Tensor q, k, v, log_decay, beta, bonus, erase, remove;
  std::vector<Tensor> defined() const {
    std::vector<Tensor> all;
    for (const Tensor& t : {q, k, v, log_decay, beta, bonus, erase, remove})
      if (t.defined()) all.push_back(t);
    return all;
  }
};

inline ChunkedTensors tensors_of(const ChunkedCase& c) {
  const Shape keys{c.batch, c.heads, c.len, c.key_dim}, steps{c.batch, c.heads, c.len, 1};
  ChunkedTensors x;
  x.q = normal(keys, "q");
  x.k = normal(keys, "k", 0.8 / std::sqrt(static_cast<double>(c.key_dim)));
  x.v = normal(keys.with(3, c.dim), "v");
  if (c.decay == Decay::head) x.log_decay = normal({c.heads}, "decay", c.decay_scale);
  if (c.decay == Decay::step) x.log_decay = normal(steps, "decay", c.decay_scale);
  if (c.decay == Decay::channel) x.log_decay = normal(keys, "decay", c.decay_scale);
  if (c.decay != Decay::none)
    for (real& value : x.log_decay.values()) value = -std::abs(value);
  if (c.rule == Rule::delta) {
    x.beta = normal(steps, "beta");
    for (real& value : x.beta.values()) value = 1 / (1 + std::exp(-value));
  }
  if (c.rule == Rule::bonus) x.bonus = normal({c.heads, c.key_dim}, "bonus");
  if (c.rule == Rule::removal) {  // of the erasing row, halved, and of a little besides
    x.erase = normal(keys, "erase", 0.8 / std::sqrt(static_cast<double>(c.key_dim)));
    x.remove = normal(keys, "remove", 0.1 / std::sqrt(static_cast<double>(c.key_dim)));
    for (int64_t i = 0; i < x.erase.size(); ++i) x.remove[i] += real(0.5) * x.erase[i];
  }
  return x;
}

struct ChunkedResult {
  Tensor out, seed;
  std::vector<Tensor> grads;  // of ChunkedTensors::defined()
};

inline ChunkedResult run_chunked(const ChunkedTensors& x, const ChunkedOptions& options) {
  const auto var = [](const Tensor& t) { return t.defined() ? Var(t, true) : Var(); };
  const ChunkedInputs in{var(x.q),    var(x.k),     var(x.v),     var(x.log_decay), {},
                         var(x.beta), var(x.bonus), var(x.erase), var(x.remove)};
  const Var out = chunked_attention(in, options);
  ChunkedResult result{out.value(), normal(out.shape(), "seed"), {}};
  out.backward(result.seed);
  for (const Var& v : {in.q, in.k, in.v, in.log_decay, in.beta, in.bonus, in.erase, in.remove})
    if (v.defined()) result.grads.push_back(v.grad());
  return result;
}

// The outputs from the arrays of ChunkedTensors::defined().
inline oracle::Array recurrence_of(const ChunkedCase& c, const std::vector<oracle::Array>& x) {
  const size_t gate = 3, last = x.size() - 1;
  const auto at = [](oracle::Index i) { return static_cast<size_t>(i); };
  oracle::StateGates gates;
  if (c.decay != Decay::none)
    gates.log_decay = [&, at](oracle::Index b, oracle::Index h, oracle::Index t, oracle::Index i) {
      const oracle::Index step = (b * c.heads + h) * c.len + t;
      if (c.decay == Decay::head) return x[gate].x[at(h)];
      return x[gate].x[at(c.decay == Decay::step ? step : step * c.key_dim + i)];
    };
  if (c.rule == Rule::delta)
    gates.beta = [&, at, last](oracle::Index b, oracle::Index h, oracle::Index t) {
      return x[last].x[at((b * c.heads + h) * c.len + t)];
    };
  if (c.rule == Rule::bonus)
    gates.bonus = [&, at, last](oracle::Index h, oracle::Index i) {
      return x[last].x[at(h * c.key_dim + i)];
    };
  const auto of_keys = [&, at](const oracle::Array& rows) {
    return [&, at](oracle::Index b, oracle::Index h, oracle::Index t, oracle::Index i) {
      return rows.x[at(((b * c.heads + h) * c.len + t) * c.key_dim + i)];
    };
  };
  if (c.rule == Rule::removal) gates.erase = of_keys(x[last - 1]), gates.remove = of_keys(x[last]);
  return oracle::state_outputs(x[0], x[1], x[2], gates, c.lengths);
}

inline Tensor as_matrix(const Tensor& t) {
  return t.shape().rank() > 1 ? t : t.reshaped({1, t.size()});
}

// Output and all gradients against the recurrence. `allowed` of the output, relative.
inline void expect_recurrence(const ChunkedCase& c, const ChunkedTensors& x, int64_t chunk,
                              double allowed) {
  SCOPED_TRACE(text_of(c) + ", chunks of " + std::to_string(chunk));
  const ChunkedResult got = run_chunked(x, {c.lengths, chunk});
  std::vector<Tensor> inputs, grads;
  std::vector<oracle::Array> arrays;
  for (const Tensor& t : x.defined()) inputs.push_back(as_matrix(t));
  for (const Tensor& t : got.grads) grads.push_back(as_matrix(t));
  for (const Tensor& t : inputs) arrays.push_back(array_of(t));
  const Twin twin = [&](const std::vector<oracle::Array>& a) { return recurrence_of(c, a); };
  const double error = relative_error(got.out, twin(arrays).x);
  EXPECT_LE(error, allowed);
  expect_gradients(inputs, grads, got.seed, twin, 1e-6);  // a log-decay acts in each step
}

}  // namespace attn::bridge
