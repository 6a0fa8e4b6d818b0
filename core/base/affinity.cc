// Affinity masks and the topology that Linux shows in /sys; see affinity.h.
#include "core/base/affinity.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr int kMostCpus = CPU_SETSIZE;

// The number at the start of `text`, which is then cut off; -1 where there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value < 0 || value >= kMostCpus) return -1;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return value;
}

bool take_sign(std::string_view& text, char sign) {
  if (text.empty() || text[0] != sign) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; cpu++)
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> parse_cpus(std::string_view text) {
  std::vector<int> cpus;
  std::string_view rest = text;
  const auto require = [&](bool is_valid) {
    ATTN_CHECK(is_valid, "'{}' is no list of processors; expected numbers below {} such as 0-3,8",
               text, kMostCpus);
  };
  do {
    const int first = take_number(rest);
    const int last = take_sign(rest, '-') ? take_number(rest) : first;
    require(first >= 0 && last >= first);
    for (int cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
  } while (take_sign(rest, ','));
  require(rest.empty());
  std::set<int> seen;
  for (const int cpu : cpus)
    ATTN_CHECK(seen.insert(cpu).second, "'{}' names processor {} twice", text, cpu);
  return cpus;
}

int core_of_cpu(int cpu) {
  std::ifstream file(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  int first = cpu;
  return file >> first ? first : cpu;  // "0,8" or "0-1"
}

std::vector<int> spread_over_cores(const std::vector<int>& cpus, int count,
                                   FunctionRef<int(int cpu)> core_of) {
  if (std::ssize(cpus) < count) return {};
  std::vector<int> firsts, others;
  std::set<int> cores;
  for (auto cpu = cpus.rbegin(); cpu != cpus.rend(); ++cpu)
    (cores.insert(core_of(*cpu)).second ? firsts : others).push_back(*cpu);
  firsts.insert(firsts.end(), others.begin(), others.end());
  firsts.resize(static_cast<size_t>(count));
  return firsts;
}

}  // namespace attn
