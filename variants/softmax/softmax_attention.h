// Exact softmax attention over a band of keys, tiled: O = softmax(scale·QKᵀ)·V without an n×n
// buffer, and the textbook one. Online softmax after Dao et al. 2022 (arXiv:2205.14135, algorithm
// 1); the backward recomputes weights from log-sum-exp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/softmax/band.h"

namespace attn {

struct SoftmaxOptions {
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};  // as in Mask
  int64_t window = -1;  // keys seen on each side of a query (left only when causal); -1: all
  int64_t before = -1;  // the window's left side where it is another one; -1: as the right
  int64_t global = 0;   // keys that every query sees, the first ones; their queries see every key
  double scale = 0;     // of the logits; 0: 1/sqrt(head_dim)
  std::shared_ptr<const BlockPattern> pattern = {};  // which blocks of keys are seen; null: all
};

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim].
Var softmax_attention(const Var& q, const Var& k, const Var& v, const SoftmaxOptions& options = {});

// The same numbers through one n×n matrix of weights a head, held until the backward where there is
// one. No windows and no patterns.
Var materialized_attention(const Var& q, const Var& k, const Var& v,
                           const SoftmaxOptions& options = {});

// One forward without gradients; kv_lengths are ignored, `causal` is that of the shape. FLOPs are
// what is executed: visible pairs plus those hidden ones that share a strip of 6 queries (24 in the
// backward) with visible ones.
Cost softmax_cost(const AttentionShape& shape, const SoftmaxOptions& options = {});
Cost materialized_cost(const AttentionShape& shape);

}  // namespace attn
