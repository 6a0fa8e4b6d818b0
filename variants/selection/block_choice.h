// The choice of earlier blocks by the product of a query with the mean of their keys. Lu et al.
// 2025, arXiv:2502.13189, eqs. 5-7: 2·n·(n/block)·d FLOPs, causal half, memory n·(most + d/block).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/simd/top_rows.h"
#include "core/tensor/tensor.h"
#include "variants/selection/block_lists.h"

namespace attn {

// q, k [heads, len, dim]. Without padding is 2·d·mean_choice_pairs(grid, most) FLOPs a head.
void choose_by_means(const Tensor& q, const Tensor& k, const ChosenBlocks& to);
double mean_choice_pairs(const BlockGrid& grid, int64_t most);
double mean_choice_bytes(const BlockGrid& grid, int64_t most);  // of its workspace, at most

// The places of the `most` largest of n scores, which are overwritten, as top_few() or, for many,
// by a list in `work` of TopList::reals(most) numbers.
inline int64_t choose_row(int64_t n, real* scores, int64_t most, real* work, int32_t* places) {
  constexpr int64_t kScoresOfFew = 1 << 13;  // read by top_few in all: some 300 ns
  if (n <= most || n * most <= kScoresOfFew) return top_few(n, scores, most, places);
  return top_places(n, scores, most, places, work);
}

}  // namespace attn
