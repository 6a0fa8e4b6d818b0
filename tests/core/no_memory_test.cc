// What must go on when the system refuses memory: destructors. Here stands the one replacement of
// the program's allocation functions, see allocations.h.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "core/memory.h"
#include "core/ops.h"
#include "core/recycled.h"
#include "tests/core/allocations.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTN_SANITIZED 1
#endif
#endif

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

namespace attn::no_memory_test {

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

}  // namespace attn::no_memory_test

namespace attn::no_memory_test {
namespace {

TEST(NoMemory, TheRefusalReachesTheCore) {
  if (!allocations_are_ours()) GTEST_SKIP() << "a sanitizer allocates";
  const RefusedMemory refusal;
  EXPECT_THROW(recycled_allocate(size_t{1} << 24), std::bad_alloc);
  EXPECT_EQ(RefusedMemory::refusals(), 1);
}

TEST(NoMemory, BlocksDieWithoutIt) {
  constexpr size_t kBytes = 64 * 13;
  const int64_t before = memory_use().live_total;
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; ++i) blocks.emplace_back(kBytes, Purpose::workspace);
  {
    const RefusedMemory refusal;
    blocks.clear();
    EXPECT_EQ(RefusedMemory::refusals(), 0);
  }
  EXPECT_EQ(memory_use().live_total, before);
  const int64_t calls = memory_use().system_calls;
  for (int i = 0; i < 5000; ++i) blocks.emplace_back(kBytes, Purpose::workspace);
  EXPECT_EQ(memory_use().system_calls, calls) << "all were kept";
}

TEST(NoMemory, TapesDieWithoutIt) {
  const Var a(Tensor::full({1}, 1), true);
  {
    std::vector<Var> chains;
    for (int i = 0; i < 3000; ++i) chains.push_back(shift(scale(a, 2), 1));
    std::vector<Var> all = {concat(chains, 0)};
    chains.clear();
    const RefusedMemory refusal;
    all.clear();
    EXPECT_EQ(RefusedMemory::refusals(), 0);
  }
  // and they still can be walked
  const Var y = scale(a, 2);
  const std::vector<Var> twice = {y, y};
  concat(twice, 0).backward(Tensor::full({2}, 1));
  EXPECT_EQ(a.grad()[0], real(4));
}

}  // namespace
}  // namespace attn::no_memory_test
