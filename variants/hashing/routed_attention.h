// Softmax attention inside clusters of positions. Roy et al. 2021, arXiv:2003.05997, section 4.1.
// balanced: the queries and the keys that a centroid has chosen; a position of several clusters
// gets the mean of their results, one of none zeros. nearest: positions of the same nearest
// centroid, in chunks of `window` members that see the chunk before too. 4·clusters·window²·d FLOPs
// beside routing; memory n·d.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

// q, k and v [batch, heads, len, dim], centroids [heads, clusters, dim]. window 0: ⌈length /
// clusters⌉ of each entry's length.
Var balanced_attention(const Var& q, const Var& k, const Var& v, const Tensor& centroids,
                       int64_t window, const Mask& mask);
// x serves as queries and keys.
Var nearest_attention(const Var& x, const Var& v, const Tensor& centroids, int64_t window,
                      const Mask& mask);
Cost balanced_cost(const AttentionShape& shape, int64_t clusters, int64_t window);

}  // namespace attn
