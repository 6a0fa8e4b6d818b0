// What of the machine and the build makes figures slow, noisy or incomplete: `attnbench doctor`.
#pragma once

#include <string>
#include <vector>

namespace attn::cli {

struct Finding {
  bool is_ok = true;
  std::string subject, text;  // of an advice, the text says what to do
};

// That scripts use: all but torch draw; torch runs variants in Python, and is compared with.
inline constexpr const char* kModulesOfPython =
    "numpy pandas scipy matplotlib jsonschema plotly torch";

// By what the system's files say; "" is a file that is not there.
Finding huge_pages_finding(const std::string& enabled);    // transparent_hugepage/enabled
Finding governor_finding(const std::string& governor);     // of cpufreq
Finding perf_finding(const std::string& paranoid_level);   // perf_event_paranoid
Finding load_finding(const std::string& load, int cores);  // the first number of loadavg
// Of modules of Python that were found, separated by blanks; "" where there is no Python.
Finding python_finding(const std::string& modules);

}  // namespace attn::cli
