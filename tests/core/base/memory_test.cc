// The pool: exact counts, peaks, scopes, reuse, the limit, and a cache that does not hoard.
#include "core/base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/spoil.h"

namespace attn::core_memory_test {
namespace {

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
    EXPECT_NE(text.find("1088"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(live + 1024)), std::string::npos) << text;
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

}  // namespace
}  // namespace attn::core_memory_test
