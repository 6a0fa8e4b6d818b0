// Begins to load memory into the cache. Nothing is read: any address will do. Worth it for memory
// that is read once and is not cached.
#pragma once

#include <cstdint>

namespace attn {

// Memory is fetched this many bytes ahead of the read. Products of several rows read a panel of
// keys across, a part of each of its rows: it should be fetched whole by then, and of 128 channels
// it has as many bytes.
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

// The lines of `count` numbers, so that rows that lie anywhere are loaded at the same time.
template <class Number>
void fetch_row(const Number* row, int64_t count) {
  constexpr uintptr_t kLine = 64;
  const auto first = reinterpret_cast<uintptr_t>(row);
  const uintptr_t end = first + static_cast<uintptr_t>(count) * sizeof(Number);
  for (uintptr_t line = first / kLine * kLine; line < end; line += kLine) fetch<kLine>(line);
}

}  // namespace attn
