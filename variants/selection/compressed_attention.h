// The compressed branch of native sparse attention: softmax attention to the means of whole blocks
// of keys that end at the query's position or before, and the choice of blocks by its weights. Yuan
// et al. 2025, arXiv:2502.11089, eqs. 7-11: 2·n²/block·d FLOPs, backward 5·n²/block·d, memory n·d.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/selection/block_lists.h"

namespace attn {

// Means of whole blocks, x [batch, heads, len, dim] -> [batch, heads, blocks, dim].
Var block_mean_rows(const BlockGrid& grid, const Var& x);

// q [batch, heads, len, dim], means of keys and values [batch, heads, blocks, dim] -> as q; zeros
// where no block has ended. Writes the blocks of each query to `chosen`: the first, the one before
// its own, and those of the largest weights, summed over `shared` neighbouring heads.
Var compressed_attention(const Var& q, const Var& key_means, const Var& value_means, int64_t shared,
                         const ChosenBlocks& chosen);

// Without padding: pairs of one head, in strips, and the memory of the forward above its inputs,
// the output and the lists.
double compressed_pairs(const BlockGrid& grid);
double compressed_bytes(const BlockGrid& grid, int64_t shared, int64_t most);

// The blocks of a query among the `count` that lie before its own, from scores of them, which are
// overwritten: all, or `most` of them. `work` has TopList::reals(most) numbers.
int64_t choose_by_weights(int64_t count, real* scores, int64_t most, real* work, int32_t* blocks);

}  // namespace attn
