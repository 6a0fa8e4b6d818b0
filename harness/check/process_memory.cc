// Linux: VmHWM is the peak since the last write of 5 to clear_refs; see process_memory.h and
// proc(5).
#include "harness/check/process_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace attn {
namespace {

#ifdef ATTN_SANITIZED
constexpr bool kIsOwnMemory = false;  // a sanitizer keeps memory of its own beside each block
#else
constexpr bool kIsOwnMemory = true;
#endif

std::optional<int64_t> status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":"))
      return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  return std::nullopt;
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

}  // namespace

std::optional<int64_t> resident_growth(const std::function<void()>& run) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  const bool is_reset = reset_peak();
  const std::optional<int64_t> before = status_bytes("VmRSS");
  run();
  const std::optional<int64_t> peak = status_bytes("VmHWM");
  if (!kIsOwnMemory || !is_reset || !before || !peak) return std::nullopt;
  return *peak - *before;
}

}  // namespace attn
