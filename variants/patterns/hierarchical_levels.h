// The levels of hierarchical attention: which blocks of queries see which blocks of means, as
// softmax problems. Without tensors. O(n) for all levels. See hierarchical_attention.h.
#pragma once

#include <cstdint>
#include <vector>

#include "variants/api/cost.h"
#include "variants/patterns/position_means.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Cells of `means.size` positions see means of as many.
struct FarLevel {
  PositionMeans means;
  real shift = 0;          // added to log-sum-exps, in units of log2: how often a mean counts
  SoftmaxProblem problem;  // of cells and means
};

struct HierarchyLevels {
  bool causal = false;
  int64_t wide = 0;     // 1: queries and keys have a column for the counts of means, which differ
  SoftmaxProblem near;  // position by position
  std::vector<FarLevel, Recycled<FarLevel>> far;

  HierarchyLevels(const AttentionShape& shape, int64_t block, bool causal,
                  const std::vector<int64_t>& kv_lengths);

 private:
  void make_blocks(FarLevel& level, int64_t block) const;
};

}  // namespace attn
