// parallel_for: covers the range once, in whole grains, on as many threads as asked for, inheriting
// scopes and throwing on.
#include "core/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/memory.h"

namespace attn::parallel_test {
namespace {

class Parallel : public ::testing::Test {
 protected:
  ~Parallel() override { set_threads(1); }
};

TEST_F(Parallel, RangesCoverOnceInWholeGrains) {
  for (const int count : {1, 2, 3, 7}) {
    set_threads(count);
    for (const int64_t n : {0, 1, 5, 64, 1000, 1001})
      for (const int64_t grain : {1, 4, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        std::atomic<int> calls = 0;
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end == n || end % grain == 0);
          EXPECT_LT(begin, end);
          calls++;
          for (int64_t i = begin; i < end; i++) seen[static_cast<size_t>(i)]++;
        });
        for (const std::atomic<int>& times : seen) ASSERT_EQ(times, 1);
        EXPECT_EQ(calls, std::min<int64_t>(count, (n + grain - 1) / grain));
      }
  }
  EXPECT_THROW(parallel_for(3, 0, [](int64_t, int64_t) {}), Error);
  EXPECT_THROW(set_threads(0), Error);
}

TEST_F(Parallel, TheSplitIsAFunctionOfTheThreadCount) {
  set_threads(3);
  const auto split = [] {
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    parallel_for(1000, 7, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      ranges.emplace_back(begin, end);
    });
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  };
  EXPECT_EQ(split(), split());
}

TEST_F(Parallel, NestedCallsRunInline) {
  set_threads(2);
  parallel_for(2, 1, [](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    int calls = 0;
    parallel_for(10, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(end - begin, 10);
      calls++;
    });
    EXPECT_EQ(calls, 1);
  });
}

TEST_F(Parallel, TheFirstExceptionIsRethrown) {
  set_threads(4);
  const auto failing = [](int64_t begin, int64_t) { throw_error(begin == 0 ? "first" : "later"); };
  try {
    parallel_for(4, 1, failing);
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  int64_t done = 0;  // and the next call works
  parallel_for(1, 1, [&](int64_t, int64_t end) { done = end; });
  EXPECT_EQ(done, 1);
}

TEST_F(Parallel, BodiesInheritScopeAndNoGrad) {
  set_threads(3);
  const auto holds = [](Purpose purpose, bool no_grad) {
    parallel_for(3, 1, [=](int64_t, int64_t) {
      EXPECT_EQ(MemoryScope::current(), purpose);
      EXPECT_EQ(NoGrad::active(), no_grad);
    });
  };
  {
    const MemoryScope scope(Purpose::workspace);
    const NoGrad guard;
    holds(Purpose::workspace, true);
  }
  holds(Purpose::activations, false);
}

TEST_F(Parallel, ThreadsBelongToTheThreadThatSetThem) {
  set_threads(3);
  std::thread([] {
    EXPECT_EQ(threads(), 1);
    set_threads(2);
  }).join();
  EXPECT_EQ(threads(), 3);
  EXPECT_GE(hardware_threads(), 1);
}

// The sum of [0, 1000) by a loop on three threads that takes memory of the pool.
int64_t sum_on_threads() {
  set_threads(3);
  std::atomic<int64_t> sum = 0;
  parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
    const Block block(64, Purpose::workspace);
    for (int64_t i = begin; i < end; i++) sum += i;
  });
  return sum;
}

TEST_F(Parallel, AChildOfForkRunsLoopsToo) {
#ifdef ATTN_STD_THREADS
  GTEST_SKIP() << "ThreadSanitizer refuses threads in a child of fork()";
#endif
  std::atomic<bool> ended = false;
  std::thread other([&] {  // holds the mutex of the pool now and then
    while (!ended) const Block block(64, Purpose::workspace);
  });
  for (int i = 0; i < 20 && !HasFailure(); i++) {
    EXPECT_EQ(sum_on_threads(), 499500);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      const auto first = sum_on_threads(), second = sum_on_threads();
      _exit(first == 499500 && second == 499500 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "signal 14: the child hung";
  }
  ended = true;
  other.join();
  EXPECT_EQ(sum_on_threads(), 499500) << "and the parent still does";
}

}  // namespace
}  // namespace attn::parallel_test
