// Exact softmax attention in tiles: O = softmax(scale·QKᵀ)·V, without an n×n buffer. Online softmax
// as in Dao et al. 2022 (arXiv:2205.14135, algorithm 1). The backward recomputes the weights from
// the log-sum-exp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "core/tensor/bfloat16_tensor.h"
#include "variants/softmax/band.h"

namespace attn {

struct SoftmaxOptions {
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};  // as in Mask
  int64_t window = -1;  // keys visible on each side of a query (causal: before it); -1: all
  int64_t before = -1;  // keys visible before a query, if it differs from `window`; -1: `window`
  int64_t global = 0;   // global tokens: the first positions see, and are seen by, all
  double scale = 0;     // of the logits; 0: 1/sqrt(head_dim)
  std::shared_ptr<const BlockPattern> pattern = {};  // visible blocks of keys; null: all
};

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim]
// -> [batch, heads, q_len, value_dim].
Var softmax_attention(const Var& q, const Var& k, const Var& v, const SoftmaxOptions& options = {});
// The same in bfloat16, without gradients; sums are in float32.
BFloat16Tensor softmax_attention(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                 const BFloat16Tensor& v, const SoftmaxOptions& options = {});

}  // namespace attn
