// Sizes of the caches, as the system tells them; see cache.h.
#include "core/base/cache.h"

#include <unistd.h>

#include <charconv>
#include <fstream>

#include <fmt/format.h>

namespace attn {
namespace {

std::string line_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

[[maybe_unused]] std::optional<int64_t> asked_of_system(int name) {
  const int64_t value = ::sysconf(name);
  return value > 0 ? std::optional(value) : std::nullopt;
}

// What the folders do not say, as in a container without them. They come first: sysconf counts a
// cache that several processors of a virtual machine share more than once.
CacheSizes completed(CacheSizes sizes) {
#ifdef _SC_LEVEL1_DCACHE_SIZE  // glibc
  if (!sizes.l1d) sizes.l1d = asked_of_system(_SC_LEVEL1_DCACHE_SIZE);
  if (!sizes.l2) sizes.l2 = asked_of_system(_SC_LEVEL2_CACHE_SIZE);
  if (!sizes.l3) sizes.l3 = asked_of_system(_SC_LEVEL3_CACHE_SIZE);
#endif
  return sizes;
}

}  // namespace

std::optional<int64_t> bytes_of_size(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  const int64_t factor = unit == "K" ? 1 << 10 : unit == "M" ? 1 << 20 : unit.empty() ? 1 : 0;
  constexpr int64_t kMost = int64_t{1} << 40;
  if (fault != std::errc() || factor == 0 || number <= 0 || number > kMost) return std::nullopt;
  return number * factor;
}

CacheSizes cache_sizes(const std::string& folder) {
  CacheSizes sizes;
  for (int index = 0;; ++index) {
    const std::string cache = fmt::format("{}/index{}/", folder, index);
    const std::string level = line_in(cache + "level"), type = line_in(cache + "type");
    if (level.empty()) return sizes;
    if (type == "Instruction") continue;
    std::optional<int64_t>* const known[] = {&sizes.l1d, &sizes.l2, &sizes.l3};
    if (level.size() == 1 && level >= "1" && level <= "3")
      *known[level[0] - '1'] = bytes_of_size(line_in(cache + "size"));
  }
}

CacheSizes cache_sizes() { return completed(cache_sizes("/sys/devices/system/cpu/cpu0/cache")); }

int64_t second_level_cache() {
  static const int64_t size = cache_sizes().l2.value_or(int64_t{512} << 10);
  return size;
}

}  // namespace attn
