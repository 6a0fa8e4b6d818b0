// The machine, compiler and build that a row was measured with.
#pragma once

#include <string>
#include <vector>

namespace attn {

// Name and value pairs in a fixed order: version, commit, dirty, compiler, flags, build_type,
// libraries, instruction set, cpu_model, caches, cores, memory_bytes, kernel, governor,
// load_before, benchmark_library_build …
struct EnvironmentField {
  std::string name, value;  // an empty value is unknown, and null in a row
  bool is_number = false;
  bool is_flag = false;  // value is "true" or "false"
};
std::vector<EnvironmentField> environment();

}  // namespace attn
