// Softmax attention of clusters of queries: the mean query of a cluster attends to all keys for its
// members. Improved: the `keys` keys of a cluster with the largest weights are weighted again by
// each member. Vyas et al. 2020, arXiv:2007.04825, eqs. 3-9. 4·clusters·n·d FLOPs beside hashing;
// improved 2·clusters·n·d + 4·n·keys·d more. Memory n·d + clusters·d.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/hashing/hamming_clusters.h"

namespace attn {

struct ClusterOptions {
  int64_t clusters = 100, iterations = 10;
  int64_t keys = 0;  // weighted again by each member; 0: none
};

// q, k and v [batch, heads, len, dim], planes [heads, bits, dim + 1]. Queries of padded positions
// belong to no cluster; their outputs are zeros.
Var clustered_attention(const Var& q, const Var& k, const Var& v, const Tensor& planes,
                        const ClusterOptions& options, const std::vector<int64_t>& kv_lengths);
Cost clustered_cost(const AttentionShape& shape, int64_t bits, const ClusterOptions& options);

}  // namespace attn
