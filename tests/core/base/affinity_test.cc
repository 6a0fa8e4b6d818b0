// Lists of processors, the choice of cores, and threads that stay where they are pinned.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "core/base/affinity.h"
#include "core/base/check.h"
#include "core/base/parallel.h"

namespace attn::affinity_test {
namespace {

using Cpus = std::vector<int>;

TEST(Affinity, ListsAreReadAsLinuxWritesThem) {
  EXPECT_EQ(parse_cpus("3"), Cpus({3}));
  EXPECT_EQ(parse_cpus("0-3,8"), Cpus({0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpus("5,1-2"), Cpus({5, 1, 2})) << "in the order written";
  for (const char* bad : {"", ",", "1,", "-1", "1-", "3-1", "a", "1 2", "0x1", "1024", "0-9999",
                          "99999999999999999999"})
    EXPECT_THROW(parse_cpus(bad), Error) << bad;
  EXPECT_THROW(parse_cpus("1,0-2"), Error) << "processor 1 twice";
}

TEST(Affinity, ThreadsAreSpreadOverCoresFromTheLastDown) {
  const auto own = [](int cpu) { return cpu; };
  const auto pairs = [](int cpu) { return cpu % 4; };  // 0 and 4 share a core, as on most PCs
  const Cpus eight = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(spread_over_cores(eight, 2, own), Cpus({7, 6}));
  EXPECT_EQ(spread_over_cores(eight, 4, pairs), Cpus({7, 6, 5, 4}));
  EXPECT_EQ(spread_over_cores({0, 1, 4, 5}, 2, pairs), Cpus({5, 4}));
  EXPECT_EQ(spread_over_cores({0, 1, 4, 5}, 3, pairs), Cpus({5, 4, 1})) << "then second threads";
  EXPECT_EQ(spread_over_cores({2}, 1, own), Cpus({2}));
  EXPECT_EQ(spread_over_cores({2}, 2, own), Cpus()) << "fewer processors than threads";
}

TEST(Affinity, TheCoreOfAProcessorIsOneOfItsOwn) {
  for (const int cpu : allowed_cpus()) EXPECT_LE(core_of_cpu(cpu), cpu);
  EXPECT_EQ(core_of_cpu(100'000), 100'000) << "where the system does not say";
}

TEST(Affinity, ThreadsStayWhereTheyArePinned) {
  const Cpus allowed = allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  const int count = std::min<int>(2, static_cast<int>(allowed.size()));
  const Cpus chosen(allowed.rbegin(), allowed.rbegin() + count);
  std::thread([&] {  // whose mask is its own: other tests keep theirs
    pin_threads(chosen);
    const ScopedThreads scoped(count);
    std::vector<Cpus> masks(static_cast<size_t>(count));
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) masks[static_cast<size_t>(i)] = allowed_cpus();
    });
#ifdef ATTN_STD_THREADS
    for (const Cpus& mask : masks) EXPECT_EQ(mask, Cpus(chosen.rbegin(), chosen.rend()));
#else
    for (size_t i = 0; i < masks.size(); i++) EXPECT_EQ(masks[i], Cpus({chosen[i]}));
#endif
    EXPECT_THROW(pin_threads({CPU_SETSIZE - 1}), Error) << "a processor that is not there";
  })
      .join();
}

}  // namespace
}  // namespace attn::affinity_test
