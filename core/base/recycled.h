// Small short-lived memory (tape records, closures, lists of one step): a freed piece is kept for
// the next request of its size, so a steady loop does not call malloc. About 20 ns; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attn {

void* recycled_allocate(size_t bytes);  // 64-byte aligned, uninitialised
void recycled_free(void* piece, size_t bytes) noexcept;
int64_t recycled_fetches();  // pieces fetched from the system since the start

// An allocator for standard containers and std::allocate_shared.
template <class T>
struct Recycled {
  using value_type = T;
  Recycled() = default;
  template <class U>
  Recycled(const Recycled<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(recycled_allocate(count * sizeof(T))); }
  void deallocate(T* piece, size_t count) noexcept { recycled_free(piece, count * sizeof(T)); }
  bool operator==(const Recycled&) const { return true; }
};

}  // namespace attn
