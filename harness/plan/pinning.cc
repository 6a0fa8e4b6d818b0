// See pinning.h.
#include "harness/plan/pinning.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/affinity.h"
#include "core/base/check.h"

namespace attn {
namespace {

std::vector<int> cpus_named(const std::string& how) {
  try {
    return parse_cpus(how);
  } catch (const Error& error) {
    throw_error(fmt::format("--pin: {}; or auto, or none", error.what()));
  }
}

}  // namespace

std::vector<int> pinned_cpus(const std::string& how, int threads) {
  if (how == "none") return {};
  if (how == "auto")
    return spread_over_cores(allowed_cpus(), threads, [](int cpu) { return core_of_cpu(cpu); });
  std::vector<int> cpus = cpus_named(how);
  cpus.resize(std::min(cpus.size(), static_cast<size_t>(threads)));
  return cpus;
}

void check_pinning(const std::string& how, int threads) {
  if (how == "none" || how == "auto") return;
  const std::vector<int> cpus = cpus_named(how), allowed = allowed_cpus();
  for (const int cpu : cpus)
    ATTN_CHECK(std::count(allowed.begin(), allowed.end(), cpu),
               "--pin {}: this process may not use processor {}; it may use {}", how, cpu,
               fmt::join(allowed, ","));
  ATTN_CHECK(std::ssize(cpus) >= threads, "--pin {} names {} processors, and a cell has {} threads",
             how, cpus.size(), threads);
}

}  // namespace attn
