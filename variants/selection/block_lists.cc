// Counting sort of queries by block, and means of blocks; see block_lists.h. Parallel over heads.
#include "variants/selection/block_lists.h"

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/simd/rows.h"

namespace attn {

BlockQueries::BlockQueries(const ChosenBlocks& chosen)
    : heads_(chosen.grid().heads()),
      blocks_(chosen.grid().blocks()),
      each_(chosen.grid().len * chosen.most()),
      block_(static_cast<size_t>(bytes(chosen.grid(), chosen.most())), MemoryScope::current()) {
  const Mark mark(Part::selection);
  const BlockGrid& grid = chosen.grid();
  parallel_for(heads_, 1, [&](int64_t first, int64_t last) {
    for (int64_t head = first; head < last; ++head) {
      int32_t* const begin = begins(head);
      int32_t* const all = queries(head);
      std::fill_n(begin, blocks_ + 1, 0);
      const auto each_pair = [&](const auto& visit) {
        for (int64_t i = 0; i < grid.len; ++i) {
          const int32_t* const of = chosen.of(head, i);
          for (int64_t e = 0; e < chosen.count(head, i); ++e) visit(i, of[e]);
        }
      };
      each_pair([&](int64_t, int32_t b) { ++begin[b + 1]; });
      for (int64_t b = 0; b < blocks_; ++b) begin[b + 1] += begin[b];
      each_pair([&](int64_t i, int32_t b) { all[begin[b]++] = static_cast<int32_t>(i); });
      for (int64_t b = blocks_; b > 0; --b) begin[b] = begin[b - 1];
      begin[0] = 0;
    }
  });
}

void block_means(const BlockGrid& grid, const real* x, real* to) {
  const int64_t d = grid.dim, blocks = grid.blocks();
  const Mark mark(Part::sums);
  over_range(grid.heads() * blocks, grid.block * d, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; ++at) {
      const int64_t head = at / blocks, b = at % blocks, count = grid.keys(head, b);
      const real* from = x + (head * grid.len + b * grid.block) * d;
      real* const mean = to + at * d;
      std::fill_n(mean, d, real(0));
      for (int64_t i = 0; i < count; ++i, from += d)
        for (int64_t c = 0; c < d; ++c) mean[c] += from[c];
      const real factor = 1 / static_cast<real>(std::max<int64_t>(1, count));
      for (int64_t c = 0; c < d; ++c) mean[c] *= factor;
    }
  });
}

void block_means_backward(const BlockGrid& grid, const real* grad_means, real* grad_x) {
  const int64_t d = grid.dim, blocks = grid.blocks();
  const Mark mark(Part::sums);
  over_range(grid.heads() * blocks, grid.block * d, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; ++at) {
      const int64_t head = at / blocks, b = at % blocks, count = grid.keys(head, b);
      real* to = grad_x + (head * grid.len + b * grid.block) * d;
      const real factor = 1 / static_cast<real>(std::max<int64_t>(1, count));
      for (int64_t i = 0; i < count; ++i, to += d)
        for (int64_t c = 0; c < d; ++c) to[c] += factor * grad_means[at * d + c];
    }
  });
}

}  // namespace attn
