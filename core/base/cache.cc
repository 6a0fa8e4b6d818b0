// Sizes of the caches, as the system tells them; see cache.h.
#include "core/base/cache.h"

#include <unistd.h>

namespace attn {

int64_t second_level_cache() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  static const int64_t size = 0;
#endif
  return size > 0 ? size : int64_t{512} << 10;
}

}  // namespace attn
