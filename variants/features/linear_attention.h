// Normalised kernel attention in linear time: o_i = Σ_j w_ij v_j / Σ_j w_ij with w_ij =
// φ(q_i)·φ(k_j), causal by prefix sums. Katharopoulos et al. 2020 (arXiv:2006.16236, eqs. 5, 9-12).
// Features are made chunk by chunk in the cache; the state is carried along, never subtracted.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/traits.h"
#include "variants/features/feature_maps.h"

namespace attn {

// What such attention can do, whatever its features.
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
  FeatureMap map = {};                   // of queries and keys; none: they are features already
  // [batch, heads, kv_len], with features that are given: what their map divided out of each key,
  // as a logarithm; undefined: nothing. Weights become w_ij·exp(log_scale_j - M_i), where M_i is
  // the running maximum over the keys that query i sees: it cancels in the ratio, cannot overflow,
  // and later keys cannot change earlier rows through it. Treated as a constant by the backward.
  Tensor log_scale = {};
};

// q [batch, heads, q_len, width], k [batch, heads, kv_len, width], v [batch, heads, kv_len, dim];
// features must be >= 0. A query whose weights sum to 0, or to less than 1e8 times the smallest
// normal number, gives 0, and zero gradients.
Var linear_attention(const Var& q, const Var& k, const Var& v, const LinearOptions& options = {});

// One forward without gradients, its features included. FLOPs are what one thread executes: where
// heads are too few for the threads, causal sums are made once more for the pieces.
Cost linear_cost(const AttentionShape& shape, const FeatureMap& map);

}  // namespace attn
