// What tiled softmax attention executes and holds, by counting the same tiles and strips as its
// kernels. O(n / strip).
#include "variants/kernels/softmax_attention.h"
#include "variants/kernels/softmax_forward.h"
#include "variants/kernels/softmax_tiles.h"
#include "variants/kernels/workers.h"

namespace attn {

Cost softmax_cost(const AttentionShape& shape, int64_t window) {
  const Band band{shape.q_len, shape.kv_len, shape.kv_len, window, shape.causal ? 0 : window};
  const int64_t heads = shape.batch * shape.heads;
  const ForwardDivision division(shape.q_len, nullptr, heads);
  const double d = static_cast<double>(shape.head_dim), size = sizeof(real);
  const double all = static_cast<double>(heads);
  const double rows = static_cast<double>(heads * shape.q_len),
               keys = static_cast<double>(heads * shape.kv_len);
  Cost cost;
  cost.flops = 4 * d * all * executed_pairs(band, nullptr, 0, division.tiles, kStrip);
  // four products for the forward's two, and the logits made again
  cost.backward_flops = 10 * d * all * softmax_backward_pairs(band, nullptr, 0);
  cost.bytes = size * d * 2 * (rows + keys);
  cost.peak_bytes =
      size * rows * d +
      static_cast<double>(workspace_bytes(
          division.tasks(), ForwardLayout(division.tiles, shape.kv_len, shape.head_dim).total));
  if (division.parts > 1)
    cost.peak_bytes +=
        size * static_cast<double>(division.tasks() * division.part_reals(shape.head_dim));
  const double kept = window < 0 ? static_cast<double>(shape.kv_len)
                                 : static_cast<double>(std::min(window + 1, shape.kv_len));
  cost.state_bytes = size * 2 * d * kept * all;
  return cost;
}

}  // namespace attn
