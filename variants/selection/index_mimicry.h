// How far an indexer's scores are from the weights of softmax attention: the loss that it is
// trained by. DeepSeek-V3.2 2025, arXiv:2512.02556, eq. 3, but for the entropy of these weights,
// which has no gradient. 2·n²·(heads·d + 3·index_heads·index_dim) FLOPs; memory n² for each choice
// and index head.
#pragma once

#include "core/autograd/var.h"
#include "variants/api/mask.h"

namespace attn {

// The weights of an indexer, as indexer.h takes them, which get gradients.
struct IndexWeights {
  Var query, key, weight;
};

// The mean over choices and rows i that see a key of -Σ_j p_ij·log softmax(I(i, ·))_j. p: softmax
// weights of the head, or the mean of those of all heads that share the indexer. q, k
// [batch, heads, len, d]; rows of padding are left out. With `keys` above 0, sums and softmaxes are
// over the `keys` keys of the largest I(i, ·) alone, of equal ones the earlier: eq. 4.
Var index_mimicry(const Tensor& q, const Tensor& k, const IndexWeights& by, const Mask& mask,
                  int64_t keys = 0);

}  // namespace attn
