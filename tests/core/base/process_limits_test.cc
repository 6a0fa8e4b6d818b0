// What the machine and the system let a process have: processors, caches, a container's memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "core/base/affinity.h"
#include "core/base/cache.h"
#include "core/base/cgroup.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "tests/tasks/data/folder.h"

namespace attn::process_limits_test {
namespace {

// Lists of processors, the choice of cores, and threads that stay where they are pinned.

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

// Sizes of caches: folders as the system writes them, and what is said where they are not there.

TEST(CacheSizes, AreReadByLevelAndKind) {
  const Folder folder;
  const auto write = [&](int index, const char* level, const char* type, const char* size) {
    const std::string cache = fmt::format("index{}/", index);
    folder.write(cache + "level", level);
    folder.write(cache + "type", type);
    folder.write(cache + "size", size);
  };
  write(0, "1\n", "Data\n", "48K\n");
  write(1, "1\n", "Instruction\n", "32K\n");
  write(2, "2\n", "Unified\n", "2M\n");
  write(3, "4\n", "Unified\n", "64M\n");
  const CacheSizes sizes = cache_sizes(folder.path());
  EXPECT_EQ(sizes.l1d, 48 << 10);
  EXPECT_EQ(sizes.l2, 2 << 20);
  EXPECT_EQ(sizes.l3, std::nullopt);
  EXPECT_EQ(cache_sizes(folder.path() + "/none").l1d, std::nullopt);
}

TEST(CacheSizes, AreNumbersWithAUnit) {
  EXPECT_EQ(bytes_of_size("32768K"), 32 << 20);
  EXPECT_EQ(bytes_of_size("512"), 512);
  for (const char* text : {"", "K", "0K", "-1K", "1G", "1KB", "99999999999999999999K"})
    EXPECT_EQ(bytes_of_size(text), std::nullopt) << text;
}

TEST(CacheSizes, TheSecondLevelIsKnownOrHalfAMegabyte) {
  EXPECT_EQ(second_level_cache(), cache_sizes().l2.value_or(512 << 10));
}

// Limits of control groups, from folders that the test makes up: both versions, nested groups, page
// cache.

constexpr int64_t kMiB = 1 << 20;

class Cgroup : public testing::Test {
 protected:
  Cgroup() : root_(testing::TempDir() + "cgroup_test_" + std::to_string(getpid())) {
    std::filesystem::create_directories(root_);
  }
  ~Cgroup() override { std::filesystem::remove_all(root_); }

  // `file` is a path below the root.
  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::optional<double> quota(const std::string& membership) const {
    return cpu_quota({root_, membership});
  }
  std::optional<int64_t> left(const std::string& membership) const {
    return cgroup_memory_left({root_, membership});
  }

  std::string root_;
};

TEST_F(Cgroup, WithoutFilesThereIsNoLimit) {
  for (const char* membership :
       {"", "0::/\n", "0::/a/b\n", "3:memory:/a\n2:cpu:/\n", "nonsense\n"}) {
    EXPECT_FALSE(quota(membership)) << membership;
    EXPECT_FALSE(left(membership)) << membership;
  }
}

TEST_F(Cgroup, OfVersionTwo) {
  put("a/cpu.max", "150000 100000");
  put("a/memory.max", std::to_string(100 * kMiB));
  put("a/memory.current", std::to_string(30 * kMiB));
  EXPECT_EQ(quota("0::/a\n"), 1.5);
  EXPECT_EQ(left("0::/a\n"), 70 * kMiB);
}

TEST_F(Cgroup, MaxIsNoLimit) {
  put("a/cpu.max", "max 100000");
  put("a/memory.max", "max");
  put("a/memory.current", "1");
  EXPECT_FALSE(quota("0::/a\n"));
  EXPECT_FALSE(left("0::/a\n"));
}

TEST_F(Cgroup, OfVersionOne) {
  put("cpu,cpuacct/a/cpu.cfs_quota_us", "50000");
  put("cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  put("memory/b/memory.limit_in_bytes", std::to_string(100 * kMiB));
  put("memory/b/memory.usage_in_bytes", std::to_string(60 * kMiB));
  const std::string membership = "5:memory:/b\n4:cpu,cpuacct:/a\n0::/\n";
  EXPECT_EQ(quota(membership), 0.5);
  EXPECT_EQ(left(membership), 40 * kMiB);
}

TEST_F(Cgroup, OfVersionOneWithoutLimit) {
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  put("memory/memory.limit_in_bytes", "9223372036854771712");
  put("memory/memory.usage_in_bytes", "4096");
  const std::string membership = "5:memory:/\n4:cpu:/\n";
  EXPECT_FALSE(quota(membership));
  EXPECT_FALSE(left(membership));
}

TEST_F(Cgroup, TheTightestLimitOfAllParentsHolds) {
  put("a/b/cpu.max", "400000 100000");
  put("a/cpu.max", "200000 100000");
  put("cpu.max", "300000 100000");
  put("a/b/memory.max", std::to_string(500 * kMiB));
  put("a/b/memory.current", "0");
  put("a/memory.max", std::to_string(900 * kMiB));
  put("a/memory.current", std::to_string(800 * kMiB));
  EXPECT_EQ(quota("0::/a/b\n"), 2);
  EXPECT_EQ(left("0::/a/b\n"), 100 * kMiB);
}

TEST_F(Cgroup, APathOfTheHostMeansTheRoot) {
  put("cpu.max", "100000 100000");
  EXPECT_EQ(quota("0::/host/group\n"), 1);
}

TEST_F(Cgroup, APathWithoutSlashMeansTheRoot) {
  put("cpu.max", "100000 100000");
  for (const char* membership : {"0::a\n", "0::\n", "0::relative/path\n"})
    EXPECT_EQ(quota(membership), 1) << membership;
}

TEST_F(Cgroup, PageCacheIsLeft) {
  put("memory.max", std::to_string(100 * kMiB));
  put("memory.current", std::to_string(95 * kMiB));
  put("memory.stat", "anon 1048576\ninactive_file " + std::to_string(80 * kMiB) + "\nsock 0");
  EXPECT_EQ(left("0::/\n"), 85 * kMiB);
  put("memory/memory.limit_in_bytes", std::to_string(100 * kMiB));
  put("memory/memory.usage_in_bytes", std::to_string(100 * kMiB));
  put("memory/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(20 * kMiB));
  EXPECT_EQ(left("5:memory:/\n"), 20 * kMiB);
}

TEST_F(Cgroup, NeverBelowNothingNorAboveTheLimit) {
  put("memory.max", "1000");
  put("memory.current", "3000");
  EXPECT_EQ(left("0::/\n"), 0);
  put("memory.stat", "inactive_file 5000");
  EXPECT_EQ(left("0::/\n"), 1000);
}

}  // namespace
}  // namespace attn::process_limits_test
