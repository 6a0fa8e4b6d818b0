// Which instruction set the kernels run on: the best of the machine, or what it is held to for
// tests and comparisons. Results differ between sets in the last bits only.
#pragma once

#include <string>
#include <vector>

namespace attn {

std::string isa();  // "avx512", "avx2", "scalar": what runs now
// What the compiler may use where it vectorises by itself, by the build's -march: loops outside the
// kernels, which copy, add and scale and wait for memory. "avx512", "avx2", "avx", "sse4.2" ..
std::string compiled_isa();
// What this machine can run, best first. To find out, it lets go of what is held and takes it
// again.
std::vector<std::string> isas();
// From now on, for all threads: the named one ("avx2", "scalar" ..), or "best". An unknown one, or
// one this machine lacks, is an Error that names the known ones and changes nothing. While this or
// isas() is called, no kernel may run.
void hold_isa(const std::string& name);

}  // namespace attn
