// Blocks and their neighbours; see neighbour_blocks.h. The ring buffer holds all visible blocks of
// a query; older positions in it are not visible.
#include "variants/patterns/neighbour_blocks.h"

#include <algorithm>

#include "variants/patterns/block_lists.h"
#include "variants/softmax/softmax.h"

namespace attn {

std::shared_ptr<const BlockPattern> NeighbourBlocks::pattern(int64_t len) const {
  return block_lists(len, size, 1, [&](int64_t, int64_t b, IndexList& seen) {
    const int64_t last = std::min(b + ahead, (len - 1) / size);
    for (int64_t key = std::max<int64_t>(0, b - back); key <= last; ++key) seen.push_back(key);
  });
}

CacheLayout NeighbourBlocks::cache(int64_t capacity) const {
  const int64_t ring = std::min(capacity, (1 + back) * size);
  return {.slots = ring,
          .slot_of = [=](int64_t at) { return at % ring; },
          .visible_slots =
              [=, *this](int64_t, int64_t at) {
                return ring_slots({std::max<int64_t>(0, at / size - back) * size, at + 1}, ring);
              },
          .by_head = false};
}

Cost NeighbourBlocks::cost(const AttentionShape& shape) const {
  Cost cost = softmax_cost(shape, {.pattern = pattern(shape.q_len)});
  cost.state_bytes *=
      static_cast<double>(cache(shape.kv_len).slots) / static_cast<double>(shape.kv_len);
  return cost;
}

}  // namespace attn
