// The top keys of clusters of queries, which each member weighs again: selection, forward and
// backward of one head. Vyas et al. 2020, arXiv:2007.04825, eqs. 6-9. 2·clusters·n·d + 4·n·keys·d
// FLOPs.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"
#include "variants/hashing/hamming_clusters.h"

namespace attn {

// The arrays of one head. Rows of clusters: means, sums, log_sums, top, weights.
struct TopKeysHead {
  int64_t valid = 0, dim = 0, clusters = 0, keys = 0;  // keys: at most valid
  int64_t row = 0;                                     // numbers of a row of `top` and `weights`
  real scale = 1;
  const real *q = nullptr, *k = nullptr, *v = nullptr;  // [len, dim]
  const real *means = nullptr, *out = nullptr;          // [clusters, dim]: queries, outputs
  const real* log_sum = nullptr;                        // [clusters], in units of log2
  int32_t* top = nullptr;                               // [clusters, row]: the top keys, ascending
  real* weights = nullptr;  // [clusters, row]: theirs in the softmax of the mean query
};

// What the gradient of one head reads and adds to; undefined parts are null.
struct TopKeysGradient {
  const real* grad = nullptr;                     // [len, dim]: of the outputs
  const real* of_clusters = nullptr;              // [clusters, dim]: its sums over members
  real *q = nullptr, *k = nullptr, *v = nullptr;  // [len, dim]
  real* means = nullptr;                          // [clusters, dim]
  real* dots = nullptr;                           // [clusters]: what top keys add to Σ w·dw
};

// Writes top and weights, and the outputs of members to `result` [len, dim].
void weigh_top_keys(const TopKeysHead& head, const QueryClusters& clusters, int64_t index,
                    real* work, real* result);
int64_t top_keys_workspace(int64_t len, int64_t dim, int64_t keys);

// Adds to the gradients what goes through the members' own weights, and what the top keys change in
// the softmax of the mean query.
void top_keys_backward(const TopKeysHead& head, const QueryClusters& clusters, int64_t index,
                       const TopKeysGradient& gradient, real* work);
int64_t top_keys_backward_workspace(int64_t dim, int64_t keys);

}  // namespace attn
