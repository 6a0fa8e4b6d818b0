// Attention without queries times keys: σ(q_t) ⊙ Σ_j e^(k_j + w_tj)⊙v_j / Σ_j e^(k_j + w_tj), in
// each channel, with w_tj = left_t·right_j or a number of t - j. Zhai et al. 2021,
// arXiv:2105.14103, eqs. 2-4. Full 4·n²·d + 2·n²·rank FLOPs, with a window that for an n, simple
// 6·n·d; memory 3·n·d.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"

namespace attn {

struct AftBiases {
  Var left, right;     // [max_len, rank], max_len at least the length; undefined: w = 0
  Var distance;        // or of each head and t - j: [heads, window], not causal 2·window - 1
  int64_t window = 0;  // w is 0 for |t - j| >= window; 0: no window
  bool any() const { return left.defined() || distance.defined(); }
  int64_t rank() const { return left.defined() ? left.dim(1) : 0; }
};

// q, k, v [batch, heads, len, dim] -> the same shape. The mask must have no edges.
Var aft_attention(const Var& q, const Var& k, const Var& v, const AftBiases& biases,
                  const Mask& mask);
Cost aft_cost(const AttentionShape& shape, const AftBiases& biases);

// The state: without biases 3·dim numbers a head; with a window those and the last keys and values;
// else all keys and values. Null where query heads with biases of their own share keys.
std::unique_ptr<Decoder> aft_decoder(const Shape& position, int64_t capacity,
                                     const AftBiases& biases);

}  // namespace attn
