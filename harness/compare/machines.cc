// Facts of run lines that must agree; see machines.h.
#include "harness/compare/machines.h"

#include <array>

#include "core/base/check.h"

namespace attn {
namespace {

// The size of the memory and the kernel's version are left out: both change with an update of the
// system, and neither sets a time.
constexpr std::array kMachine = {"cpu_model", "caches",    "cores",
                                 "threads",   "cpu_quota", "governor"};
constexpr std::array kBuild = {"compiler",  "flags",           "build_type",
                               "libraries", "instruction_set", "kernel_instruction_set"};

std::string shown(const Json& value) {
  return one_line(value.is_null() ? "unknown" : value.dump(), 60);
}

template <size_t N>
std::string first_difference(const std::array<const char*, N>& names, const RunLine& before,
                             const RunLine& after) {
  const auto fact = [](const RunLine& line, const char* name) {
    const auto found = line.environment.find(name);
    return found == line.environment.end() ? Json() : *found;
  };
  for (const char* const name : names) {
    const Json there = fact(before, name), here = fact(after, name);
    if (there != here) return fmt::format("{}: {} and {}", name, shown(there), shown(here));
  }
  return {};
}

}  // namespace

std::string machine_difference(const RunLine& before, const RunLine& after) {
  return first_difference(kMachine, before, after);
}

std::string build_difference(const RunLine& before, const RunLine& after) {
  return first_difference(kBuild, before, after);
}

std::string origin_difference(const RunLine& before, const RunLine& after) {
  std::string machine = machine_difference(before, after);
  return machine.empty() ? build_difference(before, after) : machine;
}

std::optional<double> peak_ratio(const RunLine& before, const RunLine& after) {
  if (!before.calibration || !after.calibration) return std::nullopt;
  if (!(before.calibration->fma_flops_per_s_one > 0)) return std::nullopt;
  return after.calibration->fma_flops_per_s_one / before.calibration->fma_flops_per_s_one;
}

}  // namespace attn
