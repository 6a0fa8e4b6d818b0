// Causal softmax attention of each query to its own block of keys, up to itself, and to whole
// earlier blocks that were chosen for it, in one softmax. A block's keys are multiplied with all
// queries that chose it, gathered: 4·d FLOPs a visible pair, backward 10·d, memory n·d. The partial
// results of a query are joined by their maxima and sums (online softmax, arXiv:1805.02867).
#pragma once

#include <memory>

#include "core/autograd/var.h"
#include "core/tensor/tensor.h"
#include "variants/selection/block_lists.h"

namespace attn {

// q, k, v and the output [batch, heads, len, dim]; logits are divided by √dim.
Var block_attention(const BlockGrid& grid, const Var& q, const Var& k, const Var& v,
                    const std::shared_ptr<const BlockQueries>& chosen);

// Without padding, `most` blocks beside the own one: FLOPs of both passes, and the memory of the
// forward above its inputs and the lists.
struct BlockWork {
  double flops = 0, backward_flops = 0, peak_bytes = 0;
};
BlockWork block_work(const BlockGrid& grid, int64_t most);

// Internal: the backward, in block_backward.cc. log_sum [heads, len] in units of log2.
void block_backward(const BlockGrid& grid, const Tensor& q, const Tensor& k, const Tensor& v,
                    const BlockQueries& chosen, const Tensor& out, const Tensor& log_sum,
                    const Tensor& grad, std::span<Tensor> grads);
double block_backward_pairs(const BlockGrid& grid, int64_t most);
// Pairs of a query with the whole blocks that it chose, of one head.
double chosen_pairs(const BlockGrid& grid, int64_t most);
// Pairs of the own blocks of one head, in strips of so many queries.
double own_pairs(const BlockGrid& grid, int64_t strip);

}  // namespace attn
