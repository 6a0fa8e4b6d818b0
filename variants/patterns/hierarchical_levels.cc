// The pairs of blocks of each level; see hierarchical_levels.h. O(n) for all levels, causal
// O(n·log2(n/block)).
#include "variants/patterns/hierarchical_levels.h"

#include <algorithm>
#include <cmath>

#include "variants/patterns/block_lists.h"

namespace attn {

SoftmaxProblem FarLevel::part(Span which) const {
  SoftmaxProblem p = problem;
  p.batch = which.end - which.begin;
  p.kv_lengths.assign(sizes.begin() + which.begin, sizes.begin() + which.end);
  return p;
}

HierarchyLevels::HierarchyLevels(const AttentionShape& s, int64_t block, bool is_causal,
                                 const std::vector<int64_t>& kv_lengths)
    : causal(is_causal) {
  const int64_t n = s.kv_len;
  near = {.batch = s.batch,
          .heads = s.heads,
          .q_len = n,
          .kv_len = n,
          .dim = s.head_dim,
          .value_dim = s.head_dim,
          .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
          .causal = causal};
  near.kv_lengths.assign(kv_lengths.begin(), kv_lengths.end());
  if (2 * block < n)
    near.pattern = block_lists(n, 2 * block, 1,
                               [](int64_t, int64_t b, IndexList& list) { list.push_back(b); });
  for (int64_t size = 2; size * block < n; size *= 2) {
    far.emplace_back();
    far.back().means = {.size = size, .heads = s.heads, .len = n, .lengths = near.kv_lengths};
    // A causal query sees whole blocks alone, which only padding cuts.
    if (!causal && n % size != 0) wide = 1;
    for (const int64_t valid : kv_lengths)
      if (valid % size != 0) wide = 1;
  }
  for (FarLevel& level : far) {
    level.problem = near;
    level.problem.dim += wide;
    level.shift = wide != 0 ? real(0) : std::log2(static_cast<real>(level.means.size));
    if (causal)
      make_pairs(level, s, block);
    else
      make_blocks(level, block);
  }
}

void HierarchyLevels::make_blocks(FarLevel& level, int64_t block) const {
  const int64_t m = level.means.cells();
  level.problem.q_len = level.problem.kv_len = m;
  for (int64_t& length : level.problem.kv_lengths) length = level.means.cells(length);
  level.problem.pattern = block_lists(m, block, 1, [&](int64_t, int64_t b, IndexList& list) {
    if ((b ^ 1) * block < m) list.push_back(b ^ 1);
  });
}

void HierarchyLevels::make_pairs(FarLevel& level, const AttentionShape& s, int64_t block) const {
  const int64_t n = s.kv_len, size = level.means.size, each = block * size;
  level.queries = {.len = n, .groups = 0, .rows = std::min(each, n - each), .from = {}};
  level.keys = {.len = level.means.cells(), .groups = 0, .rows = block, .from = {}};
  for (int64_t start = 0; start + each < n; start += 2 * each) {
    for (int64_t a = 0; a < level.queries.rows; ++a)
      level.queries.from.push_back(start + each + a < n ? start + each + a : -1);
    for (int64_t a = 0; a < block; ++a) level.keys.from.push_back(start / size + a);
    ++level.queries.groups, ++level.keys.groups;
  }
  for (int64_t row = 0; row < s.batch * s.heads; ++row)
    for (int64_t g = 0; g < level.keys.groups; ++g)
      level.sizes.push_back(
          std::clamp<int64_t>(level.means.cells(level.means.valid(row)) - 2 * g * block, 0, block));
  level.problem.causal = false;
  level.problem.pattern = nullptr;
  level.problem.kv_lengths.clear();
  level.problem.heads = 1;
  level.problem.q_len = level.queries.rows;
  level.problem.kv_len = block;
}

}  // namespace attn
