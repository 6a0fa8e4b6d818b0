// Processes of the Python package: which interpreter runs them, where the package lies, and what
// they print. A start takes seconds: torch is imported.
#pragma once

#include <string>
#include <vector>

#include "harness/store/rows.h"
#include "harness/sweep/process.h"

namespace attn {

// Names the interpreter: a path or a name on PATH. Without it, .venv-python of the clone that the
// program was built in, else python3 on PATH.
inline constexpr const char* kPythonVariable = "ATTNBENCH_PYTHON";

// Error where there is none.
std::string python_interpreter();
// `python -m attnbench._cell WORDS...`, with `input` on stdin.
ChildSpec package_process(std::vector<std::string> words, std::string input, double timeout_s);
// The last line that it prints; Error, which may name `file`, where it fails.
Json printed_by(const ChildSpec& process, const std::string& file);

}  // namespace attn
