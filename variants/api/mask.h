// Which keys a query sees: causality, padding and, for graphs, a list of edges.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace attn {

// A list of visible keys for every query, as in graph attention.
struct Edges {
  std::vector<int64_t> first;  // [batch · q_len + 1]: query r sees keys[first[r] .. first[r + 1])
  std::vector<int32_t> keys;   // of one query ascending, each in [0, kv_len)
};

// Who may see whom. Query i sees key j when j < kv_lengths[b] and, if causal, j <= i + kv_len -
// q_len (aligned at the end). A query that sees no key gets zeros, and gives zero gradients.
// Padding is never read. What is only causally hidden is multiplied by zero where it shares a strip
// of queries (6 in softmax kernels, 24 in linear ones) with a query that sees it: there an infinite
// or NaN key or value may reach the queries before its own.
struct Mask {
  bool causal = false;
  std::vector<int64_t>
      kv_lengths;  // valid keys of each batch entry, in [0, kv_len]; empty: all are valid
  std::shared_ptr<const Edges> edges{};  // sees those alone, of what it would see; null: all
};

}  // namespace attn
