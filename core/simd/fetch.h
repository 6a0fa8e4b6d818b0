// Begins to load memory into the cache. Nothing is read: any address will do.
#pragma once

#include <cstdint>

namespace attn {

// The lines of kBytes from `from` on.
template <int64_t kBytes>
__attribute__((always_inline)) inline void fetch(uintptr_t from) {
  for (int64_t line = 0; line < kBytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(from + static_cast<uintptr_t>(line)));
}

}  // namespace attn
