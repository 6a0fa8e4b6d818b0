// The slots of a band: first the global positions, then the ring buffer; see band_cache.h.
#include "variants/patterns/band_cache.h"

#include <algorithm>

namespace attn {

CacheLayout band_cache(const SoftmaxOptions& options, int64_t capacity) {
  const int64_t before = options.before < 0 ? options.window : options.before;
  const int64_t global = std::min(options.global, capacity);
  const int64_t ring = std::min(capacity - global, before + 1);
  return {.slots = global + ring,
          .slot_of = [=](int64_t at) { return at < global ? at : global + (at - global) % ring; },
          .visible_slots =
              [=](int64_t, int64_t at) {
                return std::vector{Slots{0, std::min(at + 1, global + ring)}};
              },
          .by_head = false};
}

}  // namespace attn
