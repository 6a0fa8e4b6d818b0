// What must go on when the system refuses memory: destructors. The allocation functions of this
// program are replaced by ones that can be told to fail on the calling thread.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "core/memory.h"
#include "core/ops.h"
#include "core/recycled.h"

namespace {

thread_local bool refuse = false;
thread_local int refusals = 0;

void* allocate(size_t bytes, size_t alignment) {
  if (refuse) {
    ++refusals;
    throw std::bad_alloc();
  }
  void* const piece =
      alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
          : std::malloc(bytes > 0 ? bytes : 1);
  if (!piece) throw std::bad_alloc();
  return piece;
}

// not inlined, or the compiler would miss the `new` of what free() is given
[[gnu::noinline]] void give_back(void* piece) { std::free(piece); }

class Refusal {
 public:
  Refusal() { refuse = true, refusals = 0; }
  ~Refusal() { refuse = false; }
};

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* piece) noexcept { give_back(piece); }
void operator delete(void* piece, size_t) noexcept { give_back(piece); }
void operator delete(void* piece, std::align_val_t) noexcept { give_back(piece); }
void operator delete(void* piece, size_t, std::align_val_t) noexcept { give_back(piece); }

namespace attn::no_memory_test {
namespace {

TEST(NoMemory, TheRefusalReachesTheCore) {
  const Refusal refusal;
  EXPECT_THROW(recycled_allocate(size_t{1} << 24), std::bad_alloc);
  EXPECT_EQ(refusals, 1);
}

TEST(NoMemory, BlocksDieWithoutIt) {
  constexpr size_t kBytes = 64 * 13;
  const int64_t before = memory_use().live_total;
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; ++i) blocks.emplace_back(kBytes, Purpose::workspace);
  {
    const Refusal refusal;
    blocks.clear();
    EXPECT_EQ(refusals, 0);
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
    const Refusal refusal;
    all.clear();
    EXPECT_EQ(refusals, 0);
  }
  // and they still can be walked
  const Var y = scale(a, 2);
  const std::vector<Var> twice = {y, y};
  concat(twice, 0).backward(Tensor::full({2}, 1));
  EXPECT_EQ(a.grad()[0], real(4));
}

}  // namespace
}  // namespace attn::no_memory_test
