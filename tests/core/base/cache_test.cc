// Sizes of caches: folders as the system writes them, and what is said where they are not there.
#include "core/base/cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/tasks/data/folder.h"

namespace attn::cache_test {
namespace {

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

}  // namespace
}  // namespace attn::cache_test
