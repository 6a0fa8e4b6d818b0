// The counted pool: what lives, what is given back, what happens when there is none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/base/function.h"
#include "core/base/memory.h"
#include "core/base/recycled.h"
#include "core/base/spoil.h"
#include "core/ops/ops.h"
#include "tests/core/base/allocations.h"
#include "tests/said.h"

namespace attn::memory_test {
namespace {

// The pool: exact counts, peaks, scopes, reuse, the limit, and a cache that does not hoard.

constexpr int kActivations = static_cast<int>(Purpose::activations);
constexpr int kWorkspace = static_cast<int>(Purpose::workspace);

TEST(Memory, CountsWhatIsAskedForInSteps) {
  const MemoryUse before = memory_use();
  {
    const Block a(1, Purpose::activations), b(65, Purpose::workspace), c(5000, Purpose::workspace);
    const MemoryUse now = memory_use();
    EXPECT_EQ(now.live[kActivations] - before.live[kActivations], 64);
    EXPECT_EQ(now.live[kWorkspace] - before.live[kWorkspace], 128 + 5056);
    EXPECT_EQ(now.live_total - before.live_total, 64 + 128 + 5056);
    EXPECT_EQ(c.bytes(), 5056u);
  }
  EXPECT_EQ(memory_use().live_total, before.live_total);
}

// All but the first eight bytes of a free block, which hold the pool's own list.
TEST(Memory, SpoiledBlocksHoldNaN) {
  constexpr int kClass = 4096;
  { const Block freed(kClass, Purpose::activations); }
  spoil_free_memory();
  const Block again(kClass, Purpose::activations);
  const auto* bytes = static_cast<const unsigned char*>(again.data());
  for (const int at : {8, 100, kClass - 1}) EXPECT_EQ(bytes[at], 0xff) << at;
}

TEST(Memory, PeaksAreExact) {
  reset_memory_peak();
  const MemoryUse before = memory_use();
  EXPECT_EQ(before.peak_total, before.live_total);
  { const Block a(6400, Purpose::activations); }
  { const Block b(3200, Purpose::workspace); }
  const MemoryUse now = memory_use();
  EXPECT_EQ(now.peak_total - before.live_total, 6400);
  EXPECT_EQ(now.peak[kWorkspace] - before.live[kWorkspace], 3200);
  reset_memory_peak();
  EXPECT_EQ(memory_use().peak_total, now.live_total);
}

TEST(Memory, BlocksAreAlignedDisjointAndReused) {
  std::vector<Block> blocks;
  for (size_t bytes = 1; bytes < (size_t{1} << 23); bytes = bytes * 5 / 3 + 7) {
    blocks.emplace_back(bytes, Purpose::workspace);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().data()) % 64, 0u);
    std::memset(blocks.back().data(), static_cast<int>(blocks.size()), blocks.back().bytes());
  }
  for (size_t i = 0; i < blocks.size(); i++) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].data());
    ASSERT_EQ(bytes[0], i + 1);
    ASSERT_EQ(bytes[blocks[i].bytes() - 1], i + 1);
  }
  const int64_t calls = memory_use().system_calls;
  std::vector<size_t> sizes;
  for (const Block& block : blocks) sizes.push_back(block.bytes());
  blocks.clear();
  for (const size_t size : sizes) blocks.emplace_back(size, Purpose::workspace);
  EXPECT_EQ(memory_use().system_calls, calls);
}

TEST(Memory, BlocksMove) {
  const int64_t before = memory_use().live_total;
  Block a(64, Purpose::workspace);
  void* const data = a.data();
  Block b(std::move(a));
  EXPECT_EQ(b.data(), data);
  Block c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(memory_use().live_total, before + 64);
}

TEST(Memory, ScopesNest) {
  EXPECT_EQ(MemoryScope::current(), Purpose::activations);
  {
    const MemoryScope outer(Purpose::weights);
    {
      const MemoryScope inner(Purpose::workspace);
      EXPECT_EQ(MemoryScope::current(), Purpose::workspace);
    }
    EXPECT_EQ(MemoryScope::current(), Purpose::weights);
    std::thread([] { EXPECT_EQ(MemoryScope::current(), Purpose::activations); }).join();
  }
  EXPECT_EQ(MemoryScope::current(), Purpose::activations);
}

TEST(Memory, TheLimitThrowsAndNamesTheFigures) {
  const int64_t live = memory_use().live_total;
  set_memory_limit(live + 1024);
  { const Block fits(1024, Purpose::workspace); }
  try {
    const Block too_big(1088, Purpose::workspace);
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_TRUE(says(text, "1088"));
    EXPECT_TRUE(says(text, std::to_string(live + 1024)));
  }
  set_memory_limit(0);
  EXPECT_EQ(memory_use().live_total, live);
}

TEST(Memory, ARefusalOfTheSystemIsOutOfMemory) {
  EXPECT_THROW(Block(size_t{1} << 60, Purpose::workspace), OutOfMemory);
}

TEST(Memory, FreedBlocksGoBackWhenAskedFor) {
  { const Block a(777 * 64, Purpose::workspace); }
  const int64_t calls = memory_use().system_calls;
  { const Block a(777 * 64, Purpose::workspace); }
  EXPECT_EQ(memory_use().system_calls, calls);
  release_free_memory();
  { const Block a(777 * 64, Purpose::workspace); }
  EXPECT_EQ(memory_use().system_calls, calls + 1);
}

TEST(Memory, ThreadsShareThePool) {
  const int64_t before = memory_use().live_total;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([t] {
      for (size_t i = 1; i < 500; i++) {
        const Block block(i * 64, Purpose::workspace);
        std::memset(block.data(), t, block.bytes());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_use().live_total, before);
}

// What must go on when the system refuses memory: destructors.

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

// Recycled memory and the callables that live in it: reuse, alignment, counting, containers,
// lifetimes of closures, threads.

TEST(Recycled, PiecesAreAlignedDisjointAndReused) {
  constexpr size_t kSizes[] = {1, 63, 64, 65, 128, 129, 5000, 100000};
  std::vector<void*> pieces;
  const auto take = [&] {
    pieces.clear();
    for (const size_t bytes : kSizes) {
      pieces.push_back(recycled_allocate(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces.back()) % 64, 0u);
      std::memset(pieces.back(), static_cast<int>(pieces.size()), bytes);
    }
    for (size_t i = 0; i < pieces.size(); i++) {
      const auto* bytes = static_cast<const unsigned char*>(pieces[i]);
      EXPECT_EQ(bytes[0], i + 1);
      EXPECT_EQ(bytes[kSizes[i] - 1], i + 1);
    }
    for (size_t i = 0; i < pieces.size(); i++) recycled_free(pieces[i], kSizes[i]);
  };
  take();
  const int64_t fetches = recycled_fetches(), calls = memory_use().system_calls;
  take();
  EXPECT_EQ(recycled_fetches(), fetches);
  EXPECT_EQ(memory_use().system_calls, calls);
  recycled_free(nullptr, 8);
}

TEST(Recycled, WhatIsFetchedIsASystemCallOfThePool) {
  const int64_t calls = memory_use().system_calls, fetches = recycled_fetches();
  std::vector<void*> pieces;
  for (int i = 0; i < 100; i++) pieces.push_back(recycled_allocate(size_t{1} << 16));
  const int64_t fetched = recycled_fetches() - fetches;
  EXPECT_GT(fetched, 0);
  EXPECT_EQ(memory_use().system_calls - calls, fetched);
  for (void* piece : pieces) recycled_free(piece, size_t{1} << 16);
}

TEST(Recycled, ThreadsShareThePieces) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([t] {
      for (int i = 0; i < 300; i++) {
        std::vector<int, Recycled<int>> numbers(static_cast<size_t>(i + 1), t);
        for (const int number : numbers) ASSERT_EQ(number, t);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Function, OwnsItsClosureUntilTheLastCopyIsGone) {
  const auto held = std::make_shared<int>(5);
  Function<int(int)> empty;
  EXPECT_FALSE(empty);
  {
    Function<int(int)> add = [held](int more) { return *held + more; };
    EXPECT_TRUE(static_cast<bool>(add));
    EXPECT_EQ(add(2), 7);
    empty = add;
  }
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_EQ(empty(3), 8);
  empty = {};
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Function, TakesWhatOnlyMovesAndPassesReferencesOn) {
  Function<void(std::string&, std::unique_ptr<int>)> append =
      [own = std::make_unique<int>(4)](std::string& text, std::unique_ptr<int> number) {
        text += std::to_string(*own + *number);
      };
  std::string text = "x";
  append(text, std::make_unique<int>(38));
  EXPECT_EQ(text, "x42");
}

TEST(Function, AReferenceCallsTheOriginal) {
  int count = 0;
  auto body = [count]() mutable { return ++count; };
  const FunctionRef<int()> reference = body;
  const FunctionRef<int()> copy = reference;
  EXPECT_EQ(reference(), 1);
  EXPECT_EQ(copy(), 2);
  EXPECT_EQ(body(), 3);
}

}  // namespace
}  // namespace attn::memory_test
