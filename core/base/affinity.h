// Which processors (logical CPUs, numbered as the system does) a process may run on, and which of
// them its threads are pinned to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/function.h"

namespace attn {

// In ascending order; empty where the system does not say.
std::vector<int> allowed_cpus();
// "0-3,8" as {0, 1, 2, 3, 8}, in the order written. Error where the text is no such list or names a
// processor twice.
std::vector<int> parse_cpus(std::string_view text);
// The processor that stands for the core of `cpu`: the first of the two that share a core.
int core_of_cpu(int cpu);
// `count` of `cpus`, from the last down, since systems put work of their own on the first ones. Two
// share a core only where there are fewer cores than threads. Empty where `cpus` are fewer.
std::vector<int> spread_over_cores(const std::vector<int>& cpus, int count,
                                   FunctionRef<int(int cpu)> core_of);

}  // namespace attn
