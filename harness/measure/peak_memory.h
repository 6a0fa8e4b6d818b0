// Memory of a workload: exact peaks of the counted pool during one run() after a warm-up run, and
// the peak RSS of the process. peak_memory.cc defines the figures. rss_peak_bytes includes earlier
// work of the process, so each measurement needs a new process.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/measure/workload.h"

namespace attn {

struct MemoryFigures {
  int64_t peak_bytes = 0;  // pool peak, inputs and weights included
  int64_t weights_bytes = 0, activations_bytes = 0, workspace_bytes = 0;  // peak of each purpose
  int64_t extra_bytes = 0;  // peak above inputs and weights, as Cost::peak_bytes
  // By formula; 0 in modes other than forward and scopes other than attention. nullopt if the
  // variant declares no cost.
  std::optional<int64_t> declared_extra_bytes = 0;
  std::optional<int64_t> state_bytes;  // see Workload::state_bytes
  int64_t rss_peak_bytes = 0;
};
MemoryFigures measure_memory(Workload& workload);

}  // namespace attn
