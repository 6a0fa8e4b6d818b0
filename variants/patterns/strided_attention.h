// Softmax attention to keys near a query and to some that lie a stride apart, under one softmax:
// two sets without a common key, joined by their log-sum-exp. Child et al. 2019, arXiv:1904.10509,
// section 4.2. 4·pairs·d FLOPs; far keys are gathered, so that both sets use the tiled kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/attention.h"
#include "variants/patterns/pattern_decoder.h"

namespace attn {

// strided: a query at i sees the j with |i - j| <= stride, and those with stride | i - j.
// fixed: those of its own block of `stride`, and of every block the last `summary`, and the first
// if `first`. Causal: of all these the j <= i.
struct SparsePattern {
  bool fixed = false;
  int64_t stride = 128, summary = 32;
  bool first = false;
  bool causal = false;

  // From the parameters `pattern`, `stride`, `summary` and `as`. A stride of 0 is the whole number
  // nearest to √max_len: that of the length at hand would let decoding differ from the forward.
  static SparsePattern of(const AttentionConfig& config);
  int64_t summaries(int64_t count) const;  // of the first `count` positions
};

// q, k and v [batch, heads, len, dim].
Var sparse_attention(const Var& q, const Var& k, const Var& v, const SparsePattern& pattern,
                     const std::vector<int64_t>& kv_lengths);
Cost sparse_cost(const AttentionShape& shape, const SparsePattern& pattern);
CacheLayout sparse_cache(const SparsePattern& pattern, int64_t capacity);

}  // namespace attn
