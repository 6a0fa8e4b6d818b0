// Sorting of blocks by Sinkhorn attention: sums of blocks, scores balanced until rows and columns
// sum to one, and blocks of keys or values beside what the balanced scores sort to their place.
// Blocks are of `block` rows; the last one of a sequence may be shorter, and none beyond its length
// exists. O(n·d + n²/block·d).
#pragma once

#include <cstdint>
#include <vector>

#include "core/var.h"

namespace attn {

// Where a sequence of `length` positions ends in blocks.
struct Blocks {
  Blocks(int64_t length, int64_t size)
      : count((length + size - 1) / size), last(length - (count - 1) * size), rows(size) {
    if (count == 0) last = 0;
    if (count == 1) rows = last;
  }
  int64_t count, last;  // blocks, and rows of the last one
  int64_t rows;         // of a sorted block: as many as the longest
};

// x [batch, heads, len, dim] -> [batch, heads, blocks of len, dim]; rows from lengths[b] on are not
// read.
Var block_sums(const Var& x, int64_t block, const std::vector<int64_t>& lengths);

// scores [batch, heads, blocks, blocks] -> the logarithm of S: exp(scores / temperature) with
// columns, then rows, normalised, `iterations` times. Rows sum to one exactly; those of blocks
// beyond a sequence, and their columns, are -inf.
Var balanced(const Var& scores, double temperature, int64_t iterations, int64_t block, int64_t len,
             const std::vector<int64_t>& lengths);

// [batch·heads·blocks, 1, 2·block, dim]: for each block I its sorted rows Σ_J S_IJ·x_J, then its
// own. A row that the last block lacks averages the others, with S_IJ over their sum.
Var sorted_and_own(const Var& log_sort, const Var& x, int64_t block,
                   const std::vector<int64_t>& lengths);
// How many rows of each of those entries exist.
std::vector<int64_t> sorted_and_own_lengths(int64_t batch, int64_t heads, int64_t len,
                                            int64_t block, const std::vector<int64_t>& lengths);
// FLOPs of sorted_and_own for `heads` heads of all batch entries, no padding.
double sorting_flops(int64_t heads, int64_t len, int64_t dim, int64_t block);

}  // namespace attn
