// The blocks of each level; see hierarchical_levels.h.
#include "variants/patterns/hierarchical_levels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "variants/patterns/block_lists.h"

namespace attn {

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
    near.pattern = block_lists(n, block, 1, [&](int64_t, int64_t b, IndexList& list) {
      for (int64_t other = std::max<int64_t>(b - 1, 0); other <= (causal ? b : b + 1); ++other)
        if (other * block < n) list.push_back(other);
    });
  for (int64_t size = 2; size * block < n; size *= 2) {
    far.emplace_back();
    far.back().means = {.size = size, .heads = s.heads, .len = n, .lengths = near.kv_lengths};
    // A causal cell sees whole blocks alone, which only padding cuts.
    if (!causal && n % size != 0) wide = 1;
    for (const int64_t valid : kv_lengths)
      if (valid % size != 0) wide = 1;
  }
  for (FarLevel& level : far) {
    level.problem = near;
    level.problem.dim += wide;
    level.shift = wide != 0 ? real(0) : std::log2(static_cast<real>(level.means.size));
    make_blocks(level, block);
  }
}

// In units of half a block, which are blocks of the finer level: those of the neighbouring blocks,
// less the neighbours that the finer level has.
void HierarchyLevels::make_blocks(FarLevel& level, int64_t block) const {
  const int64_t m = level.means.cells(), half = block / 2;
  level.problem.q_len = level.problem.kv_len = m;
  level.problem.causal = false;  // what is left of a block is earlier than all of the block
  for (int64_t& length : level.problem.kv_lengths) length = level.means.cells(length);
  level.problem.pattern = block_lists(m, half, 1, [&](int64_t, int64_t b, IndexList& list) {
    const int64_t first = b / 2 * 2;
    for (int64_t other = std::max<int64_t>(first - 2, 0); other < first + 4; ++other)
      if (std::abs(other - b) > 1 && other * half < m && (!causal || other < b))
        list.push_back(other);
  });
}

}  // namespace attn
