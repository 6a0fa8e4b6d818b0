// The instruction set of the kernels: by default the best one of the machine; tests and comparisons
// select another. Results of different sets differ in the last bits only.
#pragma once

#include <string>
#include <vector>

namespace attn {

std::string isa();  // the selected one: "avx512", "avx2", "scalar"
// The instruction set of loops outside the kernels, which the compiler vectorises by the build's
// -march: "avx512", "avx2", "avx", "sse4.2" .. These loops copy, add or scale, and are bound by
// memory bandwidth.
std::string compiled_isa();
// The instruction sets of this machine, best first. The call resets the selection for a moment.
std::vector<std::string> isas();
// Selects an instruction set ("avx2", "scalar" ..) or "best" for all threads. An unknown or missing
// one is an Error that names the available ones. No kernel may run during this call or isas().
void hold_isa(const std::string& name);

}  // namespace attn
