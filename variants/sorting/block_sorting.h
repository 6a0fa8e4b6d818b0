// Sorting of blocks by Sinkhorn attention: sums of blocks, scores balanced until rows and columns
// sum to one, and blocks of keys or values beside what the balanced scores sort to their place.
// Blocks are of `block` rows; the last one of a sequence may be shorter, and none beyond its length
// exists. O(n·d + n²/block·d). Beside it, what Long Range Arena's code computes under that name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/softmax/softmax.h"

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

// For a closure on the tape.
inline IndexList kept(std::span<const int64_t> lengths) { return {lengths.begin(), lengths.end()}; }

inline int64_t length_of(std::span<const int64_t> lengths, int64_t entry, int64_t len) {
  return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
}

// x [batch, heads, len, dim] -> [batch, heads, blocks of len, dim]; rows from lengths[b] on are not
// read.
Var block_sums(const Var& x, int64_t block, std::span<const int64_t> lengths);

// The same over at most `most` runs, as short as cover lengths[b]: [batch, heads, runs, dim], as
// many as the longest batch entry has, those that others lack are zeros.
Var run_sums(const Var& x, int64_t most, std::span<const int64_t> lengths);
int64_t run_count(int64_t length, int64_t most);

// scores [batch, heads, blocks, blocks] -> the logarithm of S: exp(scores / temperature) with
// columns, then rows, normalised, `iterations` times. Rows sum to one exactly; those of blocks
// beyond a sequence, and their columns, are -inf.
Var balanced(const Var& scores, double temperature, int64_t iterations, int64_t block, int64_t len,
             std::span<const int64_t> lengths);

// [batch·heads·blocks, 1, 2·block, dim]: for each block I its sorted rows Σ_J S_IJ·x_J, then its
// own. A row that the last block lacks averages the others, with S_IJ over their sum.
Var sorted_and_own(const Var& log_sort, const Var& x, int64_t block,
                   std::span<const int64_t> lengths);
// How many rows of each of those entries exist.
std::vector<int64_t> sorted_and_own_lengths(int64_t batch, int64_t heads, int64_t len,
                                            int64_t block, std::span<const int64_t> lengths);
// FLOPs of sorted_and_own for `heads` heads of all batch entries, no padding.
double sorting_flops(int64_t heads, int64_t len, int64_t dim, int64_t block);
// Workspaces of balanced and of sorted_and_own, in bytes.
double balancing_workspace(int64_t heads, int64_t len, int64_t block);
double sorting_workspace(int64_t heads, int64_t len, int64_t block);

// Softmax attention of each block of queries to its sorted and own rows, which log_sort [batch,
// heads, blocks, blocks] sorts. Its cost includes the scores: sums of queries times a weight.
Var sorted_attention(const Var& q, const Var& k, const Var& v, const Var& log_sort, int64_t block,
                     const std::vector<int64_t>& lengths);
Cost sorted_cost(const AttentionShape& shape, int64_t block);

// What Long Range Arena's code computes in its place, for it sums over the blocks that it means to
// sort. A sequence of N positions has R = N / block groups, rounded up: the positions that are
// equal modulo R. Each query sees the keys of its group; the sums of keys over runs of R
// neighbours, which answer with sums of values, it sees under a softmax of their own; both answers
// are added.
Var group_and_run_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                            const std::vector<int64_t>& lengths);
Cost group_and_run_cost(const AttentionShape& shape, int64_t block);

}  // namespace attn
