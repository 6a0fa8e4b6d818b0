// An allocator of small short-lived objects: records of the tape, closures, lists of one step. It
// keeps freed pieces for later requests of the same size, so a loop in its steady state does not
// call malloc. A call takes about 20 ns. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attn {

void* recycled_allocate(size_t bytes);  // 64-byte aligned, uninitialised
void recycled_free(void* piece, size_t bytes) noexcept;
int64_t recycled_fetches();  // pieces requested from the system so far

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
