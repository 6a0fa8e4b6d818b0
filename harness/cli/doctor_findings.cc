// Findings that texts of the system's files lead to; see doctor.h.
#include <charconv>
#include <optional>
#include <sstream>

#include "core/base/check.h"
#include "harness/cli/doctor.h"

namespace attn::cli {
namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

Finding huge_pages_finding(const std::string& enabled) {
  const std::string subject = "huge pages";
  if (enabled.empty()) return {true, subject, "unknown"};
  if (enabled.find("[never]") == std::string::npos) return {true, subject, enabled};
  return {false, subject,
          "off, so that large tensors miss the TLB; as root: echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding governor_finding(const std::string& governor) {
  if (governor.empty()) return {true, "governor", "unknown, as in a virtual machine"};
  if (governor == "performance") return {true, "governor", governor};
  return {false, "governor",
          governor +
              " changes the clock while cells run; as root: cpupower frequency-set -g "
              "performance"};
}

Finding perf_finding(const std::string& paranoid_level) {
  const std::optional<double> level = number_of(paranoid_level);
  if (!level) return {true, "perf", "unknown"};
  if (*level <= 2) return {true, "perf", "allowed for one's own processes"};
  return {false, "perf",
          fmt::format("not allowed (perf_event_paranoid {:g}); as root, to see hot spots: sysctl "
                      "kernel.perf_event_paranoid=2",
                      *level)};
}

Finding load_finding(const std::string& load, int cores) {
  const std::optional<double> running = number_of(load);
  if (!running) return {true, "load", "unknown"};
  const std::string text = fmt::format("{:g} on {} cores", *running, cores);
  constexpr double kBusy = 0.25;  // of the cores: then some cell soon shares one
  if (!(*running > kBusy * cores)) return {true, "load", text};
  return {false, "load", text + "; times need an idle machine: end other programs and wait"};
}

Finding python_finding(const std::string& modules) {
  if (modules.empty()) return {false, "Python", "not found, so that nothing can be drawn"};
  std::istringstream wanted(kModulesOfPython), stream(modules);
  std::string word, missing, all;
  while (stream >> word) all += " " + word + " ";
  while (wanted >> word)
    if (all.find(" " + word + " ") == std::string::npos) missing += " " + word;
  if (missing.empty()) return {true, "Python", "plots, reports and comparisons with PyTorch"};
  if (missing == " torch")
    return {true, "Python", "plots and reports; no torch, for variants in Python"};
  return {false, "Python",
          fmt::format(
              "without{}, so that pictures are missing; pip install 'attnbench[report]', or in a "
              "clone scripts/setup",
              missing)};
}

}  // namespace attn::cli
