// Processes of the Python package: which interpreter runs them, where the package lies, and what
// they print. A start takes seconds: torch is imported.
#pragma once

#include <string>
#include <vector>

#include "harness/process/process.h"
#include "harness/store/rows.h"

namespace attn {

// Names the interpreter: a path or a name on PATH. Without it, .venv-python of the clone that the
// program was built in, else python3 on PATH.
inline constexpr const char* kPythonVariable = "ATTNBENCH_PYTHON";

// Error where there is none.
std::string python_interpreter();
// The folder that holds the package attnbench, where it lies by this program: in a wheel, below
// share/ (cmake --install), or in a clone that built the extension. Empty elsewhere: an interpreter
// then finds the package by itself or not at all.
std::string package_folder();
// Puts that folder in front of PYTHONPATH once, which children inherit.
void offer_package();
// `python -m attnbench._cell WORDS...`, with `input` on stdin.
ChildSpec package_process(std::vector<std::string> words, std::string input, double timeout_s);
// The last line that it prints; Error, which may name `file`, where it fails.
Json printed_by(const ChildSpec& process, const std::string& file);

}  // namespace attn
