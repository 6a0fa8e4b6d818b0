// The compressed branch of native sparse attention: softmax attention to one row for each block of
// keys that ends at the query's position or before, and the choice of blocks by its weights. Yuan
// et al. 2025, arXiv:2502.11089, eqs. 7-11: 2·n²/stride·d FLOPs, backward 5·n²/stride·d, memory
// n·d.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/autograd/var.h"
#include "variants/selection/block_lists.h"

namespace attn {

// The blocks that are made one row each: `block` positions from every multiple of `stride`. The
// stride divides that size, and that of the blocks that are chosen among.
struct CompressedBlocks {
  int64_t block = 1, stride = 1;

  int64_t ended(int64_t len) const { return len < block ? 0 : (len - block) / stride + 1; }
};

// Means of blocks, x [batch, heads, len, dim] -> [batch, heads, blocks, dim]; the last one may be
// of fewer rows.
Var block_mean_rows(const BlockGrid& grid, const Var& x);

// q [batch, heads, len, dim], rows of keys and values [batch, heads, rows, dim], at least as many
// as blocks of `of` have ended -> as q; zeros where no block has ended. Writes the blocks of each
// query to `chosen`: the first, the one before its own, and those of the largest scores, summed
// over `shared` neighbouring heads. The score of a block is the sum of the weights of those of
// `of`, each as often as both share a stride.
Var compressed_attention(const Var& q, const Var& key_rows, const Var& value_rows,
                         const CompressedBlocks& of, int64_t shared, const ChosenBlocks& chosen);

// Without padding, of so many rows: pairs of one head, in strips, and the memory of the forward
// above its inputs, the output and the lists.
double compressed_pairs(const BlockGrid& grid, const CompressedBlocks& of);
double compressed_bytes(const BlockGrid& grid, const CompressedBlocks& of, int64_t rows,
                        int64_t shared, int64_t most);

// Whether a compressed block is a block that is chosen: scores are then the weights themselves.
inline bool is_aligned(const CompressedBlocks& of, int64_t block) {
  return of.block == block && of.stride == block;
}
// Adds factor · the weights of the first `count` compressed blocks to the scores of the blocks
// before `own`.
void add_block_scores(const CompressedBlocks& of, int64_t block, int64_t count, real factor,
                      const real* weights, int64_t own, real* scores);

// The blocks of a query among the `count` that lie before its own, from scores of them, which are
// overwritten: all, or `most` of them. `work` has TopList::reals(most) numbers.
int64_t choose_by_weights(int64_t count, real* scores, int64_t most, real* work, int32_t* blocks);

}  // namespace attn
