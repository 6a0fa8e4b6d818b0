// The rows that an indexer scores keys by (DeepSeek-V3.2 2025, arXiv:2512.02556).
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

// Scores of an indexer, I(i, j) = Σ_c w(i, c)·relu(q(i, c)·k(j)), over its heads c: of each
// attention head, or one for all heads of a sequence.
struct IndexScores {
  Tensor q;        // [batch, heads or 1, q_len, index_heads·dim]
  Tensor k;        // [batch, heads or 1, kv_len, dim]
  Tensor weights;  // [batch, heads or 1, q_len, index_heads]; undefined: 1
  bool has_relu = true;

  bool defined() const { return q.defined(); }
  int64_t dim() const { return k.dim(3); }
  int64_t index_heads() const { return q.dim(3) / k.dim(3); }
  int64_t choices() const { return q.dim(0) * q.dim(1); }  // of keys, in a batch
};

}  // namespace attn
