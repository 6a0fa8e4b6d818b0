// See block_choice.h. A strip of queries is multiplied with the packed means of a head; each row
// chooses among the blocks before its own. Parallel over heads and strips.
#include "variants/selection/block_choice.h"

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/product.h"

namespace attn {
namespace {

constexpr int64_t kChoiceStrip = 48;  // queries

struct ChoiceLayout {
  int64_t stride, scores, list, total;
  ChoiceLayout(const BlockGrid& grid, int64_t most) {
    WorkspaceParts parts;
    stride = (grid.blocks() + kPanel - 1) / kPanel * kPanel;
    scores = parts.take(std::min(kChoiceStrip, grid.len) * stride);
    list = parts.take(TopList::reals(most));
    total = parts.total();
  }
};

int64_t strips_of(const BlockGrid& grid) { return (grid.len + kChoiceStrip - 1) / kChoiceStrip; }

int64_t packed_head(const BlockGrid& grid) { return packed_reals(grid.blocks(), grid.dim); }

}  // namespace

void choose_by_means(const Tensor& q, const Tensor& k, const ChosenBlocks& to) {
  const BlockGrid& grid = to.grid();
  if (to.most() == 0) return;
  const Mark mark(Part::selection);
  const int64_t d = grid.dim, blocks = grid.blocks(), strips = strips_of(grid);
  const ChoiceLayout layout(grid, to.most());
  const MemoryScope scope(Purpose::workspace);
  const Tensor means({grid.heads(), blocks, d}), packed_means({grid.heads(), packed_head(grid)});
  block_means(grid, k.data(), means.data());
  run_tasks(grid.heads(), 0, [&](int64_t head, real*) {
    pack_transposed(means.data() + head * blocks * d, blocks, d, d,
                    packed_means.data() + head * packed_head(grid));
  });
  run_tasks(grid.heads() * strips, layout.total, [&](int64_t task, real* work) {
    const int64_t head = task / strips, begin = task % strips * kChoiceStrip;
    const int64_t rows = std::min(kChoiceStrip, grid.len - begin);
    const int64_t cols = grid.earlier(head, begin + rows - 1);
    real* const scores = work + layout.scores;
    if (cols > to.most()) {
      product(rows, cols, d, {q.data() + (head * grid.len + begin) * d, d},
              packed(packed_means.data() + head * packed_head(grid), d), scores, layout.stride);
      count_flops(2 * static_cast<double>(rows * cols * d));
    }
    for (int64_t r = 0; r < rows; ++r)
      choose_row(grid.earlier(head, begin + r), scores + r * layout.stride, to.most(),
                 work + layout.list, to.of(head, begin + r));
  });
}

double mean_choice_pairs(const BlockGrid& grid, int64_t most) {
  if (most == 0) return 0;  // nothing is scored
  double pairs = 0;
  for (int64_t begin = 0; begin < grid.len; begin += kChoiceStrip) {
    const int64_t rows = std::min(kChoiceStrip, grid.len - begin);
    const int64_t cols = grid.earlier(0, begin + rows - 1);
    if (cols > most) pairs += static_cast<double>(rows * cols);
  }
  return pairs;
}

double mean_choice_bytes(const BlockGrid& grid, int64_t most) {
  const int64_t each = std::min(most, std::max<int64_t>(0, grid.blocks() - 1));
  if (each == 0) return 0;
  return static_cast<double>(sizeof(real)) *
             static_cast<double>(grid.heads() * (grid.blocks() * grid.dim + packed_head(grid))) +
         static_cast<double>(
             workspace_bytes(grid.heads() * strips_of(grid), ChoiceLayout(grid, each).total)) +
         static_cast<double>(ChosenBlocks::bytes(grid, most));
}

}  // namespace attn
