// Slots of a band: pinned positions first, then the ring; see band_cache.h.
#include "variants/patterns/band_cache.h"

#include <algorithm>

namespace attn {

CacheLayout band_cache(const SoftmaxOptions& options, int64_t capacity) {
  const int64_t before = options.before < 0 ? options.window : options.before;
  const int64_t pinned = std::min(options.pinned, capacity);
  const int64_t ring = std::min(capacity - pinned, before + 1);
  return {.slots = pinned + ring,
          .place = [=](int64_t at) { return at < pinned ? at : pinned + (at - pinned) % ring; },
          .seen =
              [=](int64_t, int64_t at) {
                return std::vector{Span{0, std::min(at + 1, pinned + ring)}};
              },
          .by_head = false};
}

}  // namespace attn
