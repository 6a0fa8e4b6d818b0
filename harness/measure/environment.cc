// The environment of a measurement: build, libraries, processor, memory, system, load. Contains no
// host names. An unknown value is empty. Costs a few file reads.
#include <benchmark/benchmark.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/cgroup.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/simd/isa.h"
#include "harness/measure/build_info.h"
#include "harness/measure/environment.h"

namespace attn {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

std::string caches() {
  std::string text;
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string level = first_line(folder + "level"), type = first_line(folder + "type");
    if (level.empty()) return text;
    const char* letter = type == "Data" ? "d" : type == "Instruction" ? "i" : "";
    text += fmt::format("{}L{}{} {}", text.empty() ? "" : ", ", level, letter,
                        first_line(folder + "size"));
  }
}

std::string kernel() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine)
                             : "";
}

std::string load_before() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? fmt::format("{}", load) : "";
}

// "release" or "debug": how the library says it was built, which only its own reporter tells.
std::string benchmark_library_build() {
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  reporter.ReportContext(benchmark::BenchmarkReporter::Context());
  const std::string key = "\"library_build_type\": \"", report = text.str();
  const size_t start = report.find(key);
  if (start == std::string::npos) return {};
  const size_t value = start + key.size();
  return report.substr(value, report.find('"', value) - value);
}

}  // namespace

std::vector<EnvironmentField> environment() {
  const auto text = [](const char* name, std::string value) {
    return EnvironmentField{name, std::move(value)};
  };
  const auto number = [](const char* name, std::string value) {
    return EnvironmentField{name, std::move(value), true};
  };
  const std::optional<double> quota = cpu_quota();
  const int64_t memory = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGE_SIZE);
  return {
      text("version", kBuildInfo.version),
      text("commit", kCommit),
      {"dirty", kDirty, false, true},
      text("compiler", kBuildInfo.compiler),
      text("flags", kBuildInfo.flags),
      text("build_type", kBuildInfo.build_type),
      text("libraries", kBuildInfo.libraries),
      text("benchmark_library_build", benchmark_library_build()),
      text("instruction_set", compiled_isa()),  // of compiled code, but for
      text("kernel_instruction_set", isa()),    // the kernels, which choose at run time
      text("cpu_model", cpu_model()),
      text("caches", caches()),
      number("cores", fmt::format("{}", ::sysconf(_SC_NPROCESSORS_ONLN))),
      number("threads", fmt::format("{}", hardware_threads())),
      number("cpu_quota", quota ? fmt::format("{}", *quota) : ""),
      number("memory_bytes", memory > 0 ? fmt::format("{}", memory) : ""),
      text("kernel", kernel()),
      text("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
      number("load_before", load_before()),
  };
}

}  // namespace attn
