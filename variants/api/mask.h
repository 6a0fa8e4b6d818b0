// Which keys a query sees: causality, padding and, for graphs, a list of edges.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace attn {

// A list of visible keys for every query, as in graph attention. Rows are (batch entry, query).
struct Edges {
  std::vector<int64_t> first;  // [batch · q_len + 1]: query r sees keys[first[r] .. first[r + 1])
  std::vector<int32_t> keys;   // of one query ascending, each in [0, kv_len)
};

// Which keys a query sees. Query i of batch entry b sees key j when j < kv_lengths[b] and, if
// causal, j <= i + kv_len - q_len: the last query is aligned with the last key. A query that sees
// no key gets zeros and gives zero gradients.
//
// Padding (j >= kv_lengths[b]) is never read. A key that is hidden by causality alone may be
// multiplied by zero: kernels work on strips of queries (6 in softmax, 24 in linear attention), and
// a later query of the strip may see the key. If such a key or value is infinite or NaN, it can
// reach earlier queries of its strip.
struct Mask {
  bool causal = false;
  std::vector<int64_t>
      kv_lengths;  // valid keys of each batch entry, in [0, kv_len]; empty: all are valid
  // A query sees only the listed keys, among those that it would see otherwise; null: no list.
  std::shared_ptr<const Edges> edges{};
};

}  // namespace attn
