// The limits of the control group that this process runs in: version 2, or version 1. A container
// and a batch system set them, and the numbers of cores and bytes of the machine do not show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

// Where the limits are read: the root of the control groups, and the text of /proc/self/cgroup.
struct CgroupPlace {
  std::string root;
  std::string membership;
};

// How much processor time a second may take, in cores: 1.5. nullopt: no limit is set.
std::optional<double> cpu_quota();
std::optional<double> cpu_quota(const CgroupPlace& place);
// Bytes below the limit of memory, with those of files that were not used lately: the system gives
// them back. nullopt: no limit is set.
std::optional<int64_t> cgroup_memory_left();
std::optional<int64_t> cgroup_memory_left(const CgroupPlace& place);

}  // namespace attn
