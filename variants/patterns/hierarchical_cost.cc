// The cost of hierarchical attention, by counting the tiles of its levels; see
// hierarchical_attention.h.
#include <algorithm>

#include "variants/patterns/hierarchical_attention.h"
#include "variants/patterns/hierarchical_levels.h"

namespace attn {

Cost hierarchical_cost(const AttentionShape& s, int64_t block) {
  const HierarchyLevels h(s, block, s.causal, {});
  const auto of = [](int64_t x) { return static_cast<double>(x); };
  const double size = sizeof(real), d = of(s.head_dim), heads = of(s.batch * s.heads),
               rows = heads * of(s.kv_len), wide = of(h.wide);
  const SoftmaxWork near = softmax_work(h.near);
  double flops = near.flops, backward = near.backward_flops, room = near.workspace_bytes,
         bytes = 4 * rows * d;
  double held = 0, before = 0;  // numbers of outputs of finer levels; means of the one before
  for (const FarLevel& level : h.far) {
    const double means = heads * of(level.means.cells());
    const double inputs = 3 * d + 2 * wide;  // of a cell
    bytes += 4 * means * d;
    const SoftmaxWork work = softmax_work(level.problem);
    flops += work.flops;
    backward += work.backward_flops;
    room = std::max(room, size * (held + before * inputs + means * (d + wide)));
    before = means;
    held += means * (d + 1);
    room = std::max(room, size * (held + means * inputs) + work.workspace_bytes);
  }
  return {.flops = flops,
          .backward_flops = backward,
          .bytes = size * bytes,
          .peak_bytes = size * rows * (d + 1) + room};
}

}  // namespace attn
