// A variant's mathematics in the plainest form, in double precision: one sum after the other, from
// the paper's equation, without any code of the variant itself. The exceptions are random choices:
// bigbird's blocks, graph's neighbours and reformer's hash buckets are the variant's own. The
// references of bigbird and graph check how many were drawn. The contract compares outputs and
// gradients with the reference at sizes beyond every tile edge. The headers of variants/reference
// have what several references share.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "variants/api/attention.h"
#include "variants/reference/attention.h"

namespace attn {

// What one forward pass gets, in double.
struct ReferenceInputs {
  oracle::Array q, k, v;  // [batch, heads, len, head_dim]; padding may hold anything, NaN too
  // In the order of Attention::weights(); shapes of fewer than four dimensions have ones in front.
  std::vector<oracle::Array> weights;
  // In the order of Attention::gates(), [batch, heads, len, width]; padding as in k and v.
  std::vector<oracle::Array> gates = {};
  // What the layer before handed on, [batch, 1, rows, numbers], where config.receives; padding as
  // in k and v.
  oracle::Array received = {};
  AttentionConfig config;
  Mask mask;
  // The queries whose outputs are asked for, ascending; empty: all. A reference may leave the
  // outputs of the others at 0.
  std::vector<int64_t> rows = {};

  // What the decoder caches that answers the last query. Keys and values are then what it gives
  // back; queries are rounded as keys of bfloat16 take them.
  CacheType cache = CacheType::float32;
  void round_as_cached(CacheType type);  // in their place, once

  const Params& params() const { return config.params; }
  // Keys of batch entry b that are not padding.
  int64_t valid(int64_t b) const {
    return mask.kv_lengths.empty() ? k.len : mask.kv_lengths[static_cast<size_t>(b)];
  }
  // The pairs that the mask allows: causality, padding and edges.
  oracle::Visibility visible() const;
  // Of these, the pairs for which sees(i, j). i is the query's position among the keys: the last
  // query stands at the last key.
  oracle::Visibility visible(std::function<bool(int64_t i, int64_t j)> sees) const;
};

// The output [batch, heads, q_len, head_dim].
using Reference = std::function<oracle::Array(const ReferenceInputs&)>;

// Softmax attention to the visible keys for which sees(i, j).
oracle::Array softmax_where(const ReferenceInputs& x,
                            std::function<bool(int64_t i, int64_t j)> sees);

}  // namespace attn
