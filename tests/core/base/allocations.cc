// The one replacement of the test program's allocation functions, see allocations.h.
#include "tests/core/base/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace attn::counted_allocations {
namespace {

std::atomic<int64_t> calls = 0;
thread_local bool refuse = false;
thread_local int64_t refused = 0;

#ifndef ATTN_SANITIZED
void* allocated(size_t bytes, size_t alignment) {
  if (refuse) {
    ++refused;
    throw std::bad_alloc();
  }
  ++calls;
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const data = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, whole)
                                                           : std::malloc(bytes > 0 ? bytes : 1);
  if (!data) throw std::bad_alloc();
  return data;
}
#endif

}  // namespace
}  // namespace attn::counted_allocations

#ifndef ATTN_SANITIZED  // not inlined, or the compiler would miss the `new` of what free() is given
void* operator new(size_t bytes) { return attn::counted_allocations::allocated(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return attn::counted_allocations::allocated(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}
#endif

namespace attn {

bool allocations_are_ours() {
#ifdef ATTN_SANITIZED
  return false;
#else
  return true;
#endif
}

int64_t allocations() { return counted_allocations::calls; }

RefusedMemory::RefusedMemory() {
  counted_allocations::refuse = true, counted_allocations::refused = 0;
}
RefusedMemory::~RefusedMemory() { counted_allocations::refuse = false; }
int64_t RefusedMemory::refusals() { return counted_allocations::refused; }

}  // namespace attn
