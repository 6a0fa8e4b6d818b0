// Linear attention with a decaying state, one position after the other, in double: the state
// itself, where variants/reference/gated.h has a weight for each pair.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::stepwise {

using oracle::Array;
using oracle::Index;
// Of batch entry b, head h, position t and channel c.
using Number = std::function<double(Index b, Index h, Index t, Index c)>;

// o_t = tau·q_t·S_t, S_t = diag(decay_t)·S_{t-1} + strength_t·k_tᵀ·v_t; padding leaves S as it is.
inline Array outputs(const Array& q, const Array& k, const Array& v, double tau,
                     const Number& decay, const Number& strength,
                     const std::vector<Index>& lengths) {
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Array state(1, 1, q.dim, v.dim);
      const Index valid = lengths.empty() ? k.len : lengths[static_cast<size_t>(b)];
      for (Index t = 0; t < q.len; ++t)
        for (Index c = 0; c < q.dim; ++c)
          for (Index j = 0; j < v.dim; ++j) {
            double& s = state.at(0, 0, c, j);
            if (t < valid)
              s = decay(b, h, t, c) * s +
                  strength(b, h, t, 0) * k.at(b, h, t, c) * v.at(b, h, t, j);
            out.at(b, h, t, j) += tau * q.at(b, h, t, c) * s;
          }
    }
  return out;
}

inline double one(Index, Index, Index, Index) { return 1; }

// Inputs of `heads` heads, NaN in the padding.
struct Drawn {
  std::vector<Tensor> all;  // q, k, v, then gates of the given widths
  std::vector<Var> vars;

  Drawn(const Shape& rows, const std::vector<int64_t>& widths, const std::vector<int64_t>& lengths,
        double scale = 1) {
    for (const char* name : {"q", "k", "v"}) all.push_back(bridge::normal(rows, name, scale));
    for (const int64_t width : widths) all.push_back(bridge::normal(rows.with(3, width), "gate"));
    for (size_t i = 1; i < all.size(); ++i) bridge::fill_padding(all[i], lengths, bridge::kNaN);
    for (const Tensor& t : all) vars.emplace_back(t, true);
  }
  std::vector<Tensor> grads() const { return bridge::grads_of(vars); }
};

// A causal variant whose weights are those of seed 3.
inline std::unique_ptr<Attention> build(const char* name, int64_t heads, int64_t dim, int64_t len,
                                        const std::map<std::string, ParamValue>& given = {}) {
  return find_variant(name).build({heads, dim, len, true, 3, {}}, given);
}

// x: q, k, v, then the gates.
inline Var answer(const Attention& variant, const std::vector<Var>& x,
                  const std::vector<int64_t>& lengths = {}) {
  return variant.forward(x[0], x[1], x[2], {true, lengths}, std::span(x).subspan(3));
}
inline Var answer(const Attention& variant, const Drawn& x,
                  const std::vector<int64_t>& lengths = {}) {
  return answer(variant, x.vars, lengths);
}

}  // namespace attn::stepwise
