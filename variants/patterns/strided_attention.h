// Sparse attention: one softmax over near keys and over distant keys that are a stride apart. The
// two sets are disjoint; their results are merged by log-sum-exp. Child et al. 2019,
// arXiv:1904.10509, section 4.2. 4·pairs·d FLOPs. Distant keys are gathered for the tiled kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/attention.h"
#include "variants/patterns/pattern_decoder.h"

namespace attn {

// strided: query i sees the keys j with |i - j| <= stride, and those where stride divides i - j.
// fixed: query i sees the keys of its own block of `stride` positions and, of every block, the last
// `summary` keys and, if `first`, the first key. Causal: only those of these keys with j <= i.
struct SparsePattern {
  bool fixed = false;
  int64_t stride = 128, summary = 32;
  bool first = false;
  bool causal = false;

  // From the parameters `pattern`, `stride`, `summary` and `as`. A stride of 0 stands for √max_len,
  // rounded. It does not follow the length of an input, so that decoding equals the forward.
  static SparsePattern of(const AttentionConfig& config);
  int64_t summaries(int64_t count) const;  // summary positions among the first `count` positions
};

// q, k and v [batch, heads, len, dim].
Var sparse_attention(const Var& q, const Var& k, const Var& v, const SparsePattern& pattern,
                     const std::vector<int64_t>& kv_lengths);
Cost sparse_cost(const AttentionShape& shape, const SparsePattern& pattern);
CacheLayout sparse_cache(const SparsePattern& pattern, int64_t capacity);

}  // namespace attn
