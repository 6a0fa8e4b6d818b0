// Memory: exact peaks of the counted pool during one run() after a warm-up run, and this process's
// peak RSS. The figures are defined in memory.cc. Measured in a process of its own, or else
// rss_peak_bytes tells of what ran before.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/measure/workload.h"

namespace attn {

struct MemoryFigures {
  int64_t peak_bytes = 0;  // pool peak, inputs and weights included
  int64_t weights_bytes = 0, activations_bytes = 0, workspace_bytes = 0;  // peak of each purpose
  int64_t extra_bytes = 0;  // peak above inputs and weights: what Cost::peak_bytes declares
  // By formula; 0 where none applies: other modes than forward, scopes other than attention.
  // nullopt: the variant declares no cost.
  std::optional<int64_t> declared_extra_bytes = 0;
  std::optional<int64_t> state_bytes;  // see Workload::state_bytes
  int64_t rss_peak_bytes = 0;
};
MemoryFigures measure_memory(Workload& workload);

}  // namespace attn
