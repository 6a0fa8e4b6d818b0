// Recycled memory and the callables that live in it: reuse, alignment, counting, containers,
// lifetimes of closures, threads.
#include "core/base/recycled.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/function.h"
#include "core/base/memory.h"

namespace attn::recycled_test {
namespace {

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
}  // namespace attn::recycled_test
