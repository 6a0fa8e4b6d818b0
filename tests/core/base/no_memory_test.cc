// What must go on when the system refuses memory: destructors.
#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "core/base/memory.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "tests/core/base/allocations.h"

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
