// The limits of the control group that this process runs in: version 2, or version 1. A container
// and a batch system set them, and the numbers of cores and bytes of the machine do not show them.
#pragma once

#include <cstdint>
#include <optional>

namespace attn {

// How much processor time a second may take, in cores: 1.5. nullopt: no limit is set.
std::optional<double> cpu_quota();
// Bytes below the limit of memory; nullopt: no limit is set.
std::optional<int64_t> cgroup_memory_left();

}  // namespace attn
