// The levels of hierarchical attention: which blocks of queries see which blocks of means, as
// softmax problems. Without tensors. See hierarchical_attention.h.
#pragma once

#include <cstdint>
#include <vector>

#include "variants/api/cost.h"
#include "variants/patterns/position_means.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Queries see means of `means.size` positions, of the other block of a pair.
struct FarLevel {
  PositionMeans means;
  real shift = 0;          // added to log-sum-exps, in units of log2: how often a mean counts
  SoftmaxProblem problem;  // of means; causal: of one pair of blocks
  Regroup queries, keys;   // causal: the pairs of a head, the later block and the earlier one
  IndexList sizes;         // causal: [batch · heads · pairs], keys of each that are no padding

  Span pairs() const { return {0, static_cast<int64_t>(sizes.size())}; }
  SoftmaxProblem part(Span which) const;  // causal: of some pairs
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
  void make_pairs(FarLevel& level, const AttentionShape& shape, int64_t block) const;
};

}  // namespace attn
