// Begins to load memory into the cache. Nothing is read: any address will do. What is read once,
// from memory, is worth it.
#pragma once

#include <cstdint>

namespace attn {

// So many bytes before they are read. With AVX2 a panel of keys is read across, 64 bytes of each
// row: it should be fetched whole by then, and of 128 channels it has as many bytes.
inline constexpr int64_t kFetchedAhead = 32 << 10;

inline const void* ahead_of(const void* from) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + kFetchedAhead);
}

// The lines of kBytes from `from` on.
template <int64_t kBytes>
__attribute__((always_inline)) inline void fetch(uintptr_t from) {
  for (int64_t line = 0; line < kBytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(from + static_cast<uintptr_t>(line)));
}

inline void fetch_all(int64_t bytes, uintptr_t from) {
  for (int64_t line = 0; line < bytes; line += 64) fetch<64>(from + static_cast<uintptr_t>(line));
}

}  // namespace attn
