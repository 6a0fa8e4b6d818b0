// Linear attention: o_i = Σ_j w_ij v_j / Σ_j w_ij with w_ij = φ(q_i)·φ(k_j); causal by prefix sums.
// Katharopoulos et al. 2020 (arXiv:2006.16236, eqs. 5, 9-12). Features are computed chunk by chunk
// in the cache. States are only added, never subtracted.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/traits.h"
#include "variants/features/feature_maps.h"

namespace attn {

// The traits of linear attention with any feature map.
inline constexpr Traits kKernelTraits = {.causal = true,
                                         .cross = true,
                                         .linear_time = true,
                                         .convex = true,
                                         .permutable = true,
                                         .decode = true,
                                         .rowwise = true};

struct LinearOptions {
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};  // as in Mask; padded keys and values are never read
  FeatureMap map = {};                   // of queries and keys; default: they are features already
  // [batch, heads, kv_len], for Kind::given: the logarithm of the factor that the map divided each
  // key by; undefined: 1. The weights are w_ij·exp(log_scale_j - M_i), where M_i is the running
  // maximum over the visible keys of query i. M_i cancels in the ratio, prevents overflow, and
  // keeps earlier rows independent of later keys. The backward treats log_scale as a constant.
  Tensor log_scale = {};
  // [batch, heads, kv_len, 1], causal with q_len = kv_len: key j weighs (1 - g_j)·Π_{j < t <= i}
  // g_t for query i, with g = σ(gate); see key_gates.h. Undefined: 1.
  Var gate = {};
};

// q [batch, heads, q_len, width], k [batch, heads, kv_len, width], v [batch, heads, kv_len, dim];
// features must be >= 0 or waves. A query whose weights sum to less than 1e8 times the
// smallest normal number gets zeros and zero gradients; of waves, see normalizer.h.
// Differentiable by q, k, v, the gate and the map's directions.
Var linear_attention(const Var& q, const Var& k, const Var& v, const LinearOptions& options = {});

// One forward without gradients; includes the features. FLOPs are those of one thread. Where heads
// are too few for the threads, causal sums are computed once more for the pieces.
Cost linear_cost(const AttentionShape& shape, const FeatureMap& map, bool gated = false);

}  // namespace attn
