// Normalised kernel attention in linear time: o_i = Σ_j w_ij v_j / Σ_j w_ij with w_ij =
// φ(q_i)·φ(k_j), causal by prefix sums. Katharopoulos et al. 2020 (arXiv:2006.16236, eqs. 5, 9-12),
// in chunks; chunk-boundary states are stored, never subtracted.
#pragma once

#include <cstdint>
#include <vector>

#include "core/var.h"
#include "variants/attention.h"

namespace attn {

struct LinearOptions {
  bool causal = false;
  std::vector<int64_t> kv_lengths =
      {};  // as in Mask; features and values of padded keys are never read
  // [batch, heads, kv_len]: what a feature map divided out of each key, as a logarithm; undefined:
  // nothing. Weights become w_ij·exp(log_scale_j - M_i), where M_i is the running maximum over the
  // keys that query i sees: it cancels in the ratio, cannot overflow, and later keys cannot change
  // earlier rows through it. Treated as a constant by the backward.
  Tensor log_scale = {};
};

// phi_q [batch, heads, q_len, features], phi_k [batch, heads, kv_len, features], both >= 0; v
// [batch, heads, kv_len, dim]. A query whose weights sum to 0, or to less than 1e8 times the
// smallest normal number, gives 0, and zero gradients.
Var linear_attention(const Var& phi_q, const Var& phi_k, const Var& v,
                     const LinearOptions& options = {});

// One forward without gradients, the features apart. FLOPs are what is executed.
Cost linear_cost(const AttentionShape& shape, int64_t features);

}  // namespace attn
