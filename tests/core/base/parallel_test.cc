// Loops over threads, and the marks that they leave for the clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "core/autograd/var.h"
#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "tests/said.h"

namespace attn::parallel_test {
namespace {

// parallel_for: covers the range once, in whole grains, on as many threads as asked for, inheriting
// scopes and throwing on.

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
  EXPECT_EQ(fault_of([&] { parallel_for(4, 1, failing); }), "first");
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

// The shares of a pass by part, where work of known length is marked. Lengths are times of a loop
// that watches the clock: exact but for what the machine takes from the test.

// Works for at least this time.
void spend(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
    ;
}

double total(const PartTimes& times) {
  return std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0);
}

constexpr double kWork = 4e-3;  // seconds: long beside what starting a thread takes

TEST(Marks, NothingIsMarkedOutsideOfATimedPass) {
  EXPECT_FALSE(marks_are_on());
  {
    const Mark mark(Part::sorting);
    EXPECT_EQ(current_part(), Part::other);
    spend(kWork);
  }
  const PartTimes times = time_parts([] {});
  EXPECT_EQ(times.marks, 0);
  EXPECT_EQ(times.of(Part::sorting), 0) << "of before the pass";
}

TEST(Marks, PartsAddUpToThePass) {
  const ScopedThreads one(1);
  const PartTimes times = time_parts([] {
    {
      const Mark mark(Part::masks);
      spend(kWork);
    }
    spend(2 * kWork);
    const Mark mark(Part::hashing);
    spend(3 * kWork);
  });
  EXPECT_EQ(times.marks, 2);
  EXPECT_NEAR(total(times), times.pass_s, 1e-9 + 1e-6 * times.pass_s);
  EXPECT_GE(times.of(Part::masks), 0.99 * kWork);
  EXPECT_GE(times.of(Part::other), 0.99 * 2 * kWork);
  EXPECT_GE(times.of(Part::hashing), 0.99 * 3 * kWork);
  EXPECT_EQ(times.of(Part::products), 0);
}

// The outer mark's own time alone: a part of the loop at each end, twice as long inside.
TEST(Marks, TheInnerMarkTakesItsTimeFromTheOuterOne) {
  const ScopedThreads one(1);
  const PartTimes times = time_parts([] {
    const Mark outer(Part::recurrence);
    spend(kWork);
    {
      const Mark inner(Part::gathering);
      EXPECT_EQ(current_part(), Part::gathering);
      spend(4 * kWork);
    }
    EXPECT_EQ(current_part(), Part::recurrence);
    spend(kWork);
  });
  EXPECT_GE(times.of(Part::gathering), 0.99 * 4 * kWork);
  EXPECT_GE(times.of(Part::recurrence), 0.99 * 2 * kWork);
  EXPECT_LE(times.of(Part::recurrence), times.pass_s - times.of(Part::gathering) + 1e-9);
}

TEST(Marks, AKernelsMarkCountsOnlyOutsideOfOthers) {
  const ScopedThreads one(1);
  std::vector<real> a(64 * 64, 1), b(64 * 64, 1), c(64 * 64);
  const auto multiply = [&] {
    for (int i = 0; i < 20; ++i) product(64, 64, 64, {a.data(), 64}, {b.data(), 64}, c.data(), 64);
  };
  const PartTimes plain = time_parts(multiply);
  EXPECT_EQ(plain.marks, 20);
  EXPECT_GT(plain.of(Part::products), 0);
  const PartTimes inside = time_parts([&] {
    const Mark mark(Part::features);
    multiply();
  });
  EXPECT_EQ(inside.marks, 1);
  EXPECT_EQ(inside.of(Part::products), 0);
  EXPECT_GT(inside.of(Part::features), 0);
}

// Each thread works for a part of the caller's, or of its own; who has no share waits.
TEST(Marks, ThreadsOfALoopAreCounted) {
  const ScopedThreads two(2);
  const PartTimes times = time_parts([] {
    {
      const Mark mark(Part::masks);  // both threads inherit it
      parallel_for(2, 1, [](int64_t, int64_t) { spend(kWork); });
    }
    parallel_for(2, 1, [](int64_t begin, int64_t) {
      const Mark mark(begin == 0 ? Part::sorting : Part::hashing);
      spend(begin == 0 ? kWork : 3 * kWork);
    });
    spend(2 * kWork);  // on one thread
  });
  EXPECT_GE(times.of(Part::masks), 0.99 * 2 * kWork);
  EXPECT_GE(times.of(Part::sorting), 0.99 * kWork);
  EXPECT_GE(times.of(Part::hashing), 0.99 * 3 * kWork);
  EXPECT_GE(times.of(Part::other), 0.99 * 2 * kWork);
  // The second waits while the first works alone. The first waits for the second too, but not where
  // both share a core.
  EXPECT_GE(times.of(Part::waiting), 0.9 * 2 * kWork);
  EXPECT_NEAR(total(times), 2 * times.pass_s, 0.02 * times.pass_s);
}

TEST(Marks, ThreadsThatNoLoopOfThePassStartedAreNotCounted) {
  const ScopedThreads one(1);
  const PartTimes times = time_parts([] {
    std::thread([] {
      const Mark mark(Part::softmax);
      EXPECT_EQ(current_part(), Part::other);
      spend(kWork);
    }).join();
  });
  EXPECT_EQ(times.of(Part::softmax), 0);
  EXPECT_EQ(times.marks, 0);
}

TEST(Marks, APassThatThrowsLeavesThemOff) {
  EXPECT_THROW(time_parts([] {
                 const Mark mark(Part::edges);
                 throw std::runtime_error("no");
               }),
               std::runtime_error);
  EXPECT_FALSE(marks_are_on());
  EXPECT_EQ(time_parts([] {}).of(Part::edges), 0) << "of the pass before";
}

TEST(Marks, OnePassIsTimedAtOnce) {
  EXPECT_THROW(time_parts([] { time_parts([] {}); }), Error);
  EXPECT_FALSE(marks_are_on());
}

TEST(Marks, EveryPartHasAName) {
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    EXPECT_EQ(value_named<Part>(name_of(part)), part) << i;
  }
}

}  // namespace
}  // namespace attn::parallel_test
