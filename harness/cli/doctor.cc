// attnbench doctor: a line each for what figures depend on, `ok` or `advice` with what to do.
#include "harness/cli/doctor.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/cli/machine.h"
#include "harness/cli/sweep_request.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/measure/build_info.h"
#include "harness/measure/environment.h"
#include "harness/process/process.h"
#include "harness/process/python_process.h"
#include "harness/run/run_line.h"
#include "harness/store/user_cache.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string fact(const char* name) {
  for (const EnvironmentField& field : environment())
    if (field.name == name) return field.value;
  return "";
}

Finding compiler_finding() {
  const std::string type = kBuildInfo.build_type;
  const std::string text = fmt::format("{}, build type {}", kBuildInfo.compiler, type);
  if (type == "Release") return {true, "compiler", text};
  return {false, "compiler", text + "; build by cmake --preset native: a debug build times itself"};
}

Finding instructions_finding(const Machine& machine) {
  const std::string best = machine.sets.empty() ? machine.selected : machine.sets.front();
  if (machine.selected != best)
    return {false, "instructions",
            fmt::format("kernels use {}, the processor has {}; unset ATTN_ISA", machine.selected,
                        best)};
  return {true, "instructions",
          fmt::format("kernels use {}, other code {}", machine.selected, machine.compiled)};
}

Finding memory_finding() {
  const auto free = static_cast<double>(free_memory());
  const std::string text = human_bytes(free) + " free";
  if (free >= 2 * kGiB) return {true, "memory", text};
  return {false, "memory", text + "; long lengths need more: end other programs, or --max-memory"};
}

Finding disk_finding() {
  std::error_code unknown;
  const auto space = std::filesystem::space(".", unknown);
  if (unknown) return {false, "disk", "unknown: " + unknown.message()};
  const auto free = static_cast<double>(space.available);
  const std::string text = human_bytes(free) + " free in this folder";
  if (free >= kGiB) return {true, "disk", text};
  return {false, "disk", text + "; rows need little, builds and pictures 1 GiB"};
}

Finding noise_finding(const Machine& machine) {
  if (!machine.floors.empty())
    return {true, "noise", fmt::format("measured at {} sizes", machine.floors.size())};
  return {false, "noise",
          "what differences this machine can tell is not known; attnbench noise measures it"};
}

// Asks .venv of this folder or of one above it, else the system's Python.
std::string python_modules() {
  namespace fs = std::filesystem;
  const char* const named = std::getenv(kPythonVariable);  // a wheel names its own
  std::string python = named ? named : "python3";
  for (fs::path folder = fs::current_path(); !named && folder.has_relative_path();
       folder = folder.parent_path())
    if (const fs::path own = folder / ".venv/bin/python"; fs::exists(own)) {
      python = own.string();
      break;
    }
  const std::string code = fmt::format(
      "import importlib.util as u; print('python', *(m for m in '{}'.split() if u.find_spec(m)))",
      kModulesOfPython);
  constexpr double kPatience = 20;  // seconds
  ChildPool pool;
  pool.start(0, {"/usr/bin/env", {python, "-c", code}, "", kPatience});
  const auto ended = pool.wait();
  const bool is_ok = ended && ended->second.end == ChildResult::End::exited && !ended->second.code;
  return is_ok ? ended->second.output : "";
}

int run_doctor(const Arguments&) {
  const Machine machine = this_machine(UserCache::default_file(kNoiseFile));
  const std::vector<Finding> findings = {
      compiler_finding(),
      instructions_finding(machine),
      huge_pages_finding(first_line("/sys/kernel/mm/transparent_hugepage/enabled")),
      governor_finding(fact("governor")),
      load_finding(first_line("/proc/loadavg"), hardware_threads()),
      perf_finding(first_line("/proc/sys/kernel/perf_event_paranoid")),
      memory_finding(),
      disk_finding(),
      python_finding(python_modules()),
      noise_finding(machine)};
  for (const Finding& finding : findings)
    print(fmt::format("{:<6} {:<13} {}\n", finding.is_ok ? "ok" : "advice", finding.subject,
                      finding.text));
  return kOk;
}

}  // namespace

Verb doctor_verb() {
  return {.name = "doctor",
          .usage = "",
          .summary = "what makes figures of this machine slow, noisy or incomplete, and what to do",
          .options = {},
          .max_words = 0,
          .run = run_doctor};
}

}  // namespace attn::cli
