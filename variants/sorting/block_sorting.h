// Sinkhorn attention: sums of blocks, Sinkhorn normalisation of block scores, sorted blocks of keys
// and values, and attention to them. A block has `block` rows; the last block of a sequence may be
// shorter. O(n·d + n²/block·d). Also the attention that Long Range Arena's code computes under that
// name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/softmax/softmax.h"

namespace attn {

// The blocks of a sequence of `length` positions.
struct Blocks {
  Blocks(int64_t length, int64_t size)
      : count((length + size - 1) / size), last(length - (count - 1) * size), rows(size) {
    if (count == 0) last = 0;
    if (count == 1) rows = last;
  }
  int64_t count, last;  // blocks, and rows of the last one
  int64_t rows;         // rows of a sorted block: those of the longest block
};

// A copy of the lengths that a closure on the tape can own.
inline IndexList copied(std::span<const int64_t> lengths) {
  return {lengths.begin(), lengths.end()};
}

inline int64_t length_of(std::span<const int64_t> lengths, int64_t entry, int64_t len) {
  return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
}

// The sums of blocks: x [batch, heads, len, dim] -> [batch, heads, blocks of len, dim]. Rows from
// lengths[b] on are not read.
Var block_sums(const Var& x, int64_t block, std::span<const int64_t> lengths);

// The sums of at most max_runs equal runs that cover lengths[b]: [batch, heads, runs, dim]. `runs`
// is that of the longest batch entry; the others are padded with zeros.
Var run_sums(const Var& x, int64_t max_runs, std::span<const int64_t> lengths);
int64_t run_count(int64_t length, int64_t max_runs);

// Sinkhorn normalisation: scores [batch, heads, blocks, blocks] -> log S, where S is exp(scores /
// temperature) after `iterations` normalisations of columns, then rows. The rows of S sum to one.
// Rows and columns of blocks beyond the sequence are -inf.
Var balanced(const Var& scores, double temperature, int64_t iterations, int64_t block, int64_t len,
             std::span<const int64_t> lengths);

// [batch·heads·blocks, 1, 2·block, dim]: for each block I the sorted rows Σ_J S_IJ·x_J, then its
// own rows. For a row that the last block lacks, the weights S_IJ of the other blocks are
// normalised.
Var sorted_and_own(const Var& log_sort, const Var& x, int64_t block,
                   std::span<const int64_t> lengths);
// The number of valid rows of each of these entries.
std::vector<int64_t> sorted_and_own_lengths(int64_t batch, int64_t heads, int64_t len,
                                            int64_t block, std::span<const int64_t> lengths);
// FLOPs of sorted_and_own for `heads` heads, counted over all batch entries, without padding.
double sorting_flops(int64_t heads, int64_t len, int64_t dim, int64_t block);
// Workspaces of balanced and of sorted_and_own, in bytes.
double balancing_workspace(int64_t heads, int64_t len, int64_t block);
double sorting_workspace(int64_t heads, int64_t len, int64_t block);

// Softmax attention of each block of queries to its sorted and its own rows; log_sort [batch,
// heads, blocks, blocks]. The cost includes the scores: sums of queries times a weight.
Var sorted_attention(const Var& q, const Var& k, const Var& v, const Var& log_sort, int64_t block,
                     const std::vector<int64_t>& lengths);
Cost sorted_cost(const AttentionShape& shape, int64_t block);

// The attention that Long Range Arena's code computes instead, since it sums over the blocks that
// it should sort. A sequence of N positions has R = N / block groups, rounded up: the positions
// that are equal modulo R. The result is the sum of two softmax attentions: to the keys of the
// query's group, and to the sums of keys and values over runs of R neighbours.
Var group_and_run_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                            const std::vector<int64_t>& lengths);
Cost group_and_run_cost(const AttentionShape& shape, int64_t block);

}  // namespace attn
