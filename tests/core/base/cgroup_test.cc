// Limits of control groups, from folders that the test makes up: both versions, nested groups, page
// cache.
#include "core/base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace attn::cgroup_test {
namespace {

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
}  // namespace attn::cgroup_test
