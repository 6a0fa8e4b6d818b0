// The shares of a pass by part, where work of known length is marked. Lengths are times of a loop
// that watches the clock: exact but for what the machine takes from the test.
#include "core/base/marks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"

namespace attn::marks_test {

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

}  // namespace attn::marks_test
