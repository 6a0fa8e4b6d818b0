// Which processors the threads of a speed cell stay on, so that the system moves none of them in
// mid-measurement.
#pragma once

#include <string>
#include <vector>

namespace attn {

// `how`: "auto" takes a core for each thread, from the last that this process may use down; "none"
// pins nothing; a list such as "2-3" gives its first processors. Empty: nothing is pinned, which
// holds for "auto" where there are more threads than processors.
std::vector<int> pinned_cpus(const std::string& how, int threads);
// Error where `how` is none of these, or names a processor that this process may not use, or fewer
// than `threads`.
void check_pinning(const std::string& how, int threads);

}  // namespace attn
