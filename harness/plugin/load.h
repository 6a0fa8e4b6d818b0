// Plug-ins: shared libraries whose variants and tasks join the catalogues of this process.
#pragma once

#include <string>
#include <vector>

namespace attn {

// Files to load, separated by ':'. A loaded plug-in is added to it, so that child processes load
// the same.
inline constexpr const char* kPluginsVariable = "ATTNBENCH_PLUGINS";

// Loads the files that were not loaded before. Call it before anything points into all_variants()
// or all_tasks(). An Error of one line names the file and why it does not fit: no shared library,
// no plug-in, another version, compiler or `real`, a name that is taken; an IoError where the file
// cannot be read.
void load_plugins(const std::vector<std::string>& files);
// Those that the variable names.
void load_plugins_of_environment();

}  // namespace attn
