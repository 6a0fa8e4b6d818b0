// Memory of one run, exact to the byte for allocations from the counted pool. Costs two runs.
// peak_bytes: the highest number of live pool bytes during the run, with weights, inputs and their
// gradients. The peak of each purpose can be at a different time, so that their sum can be larger.
// extra_bytes: peak_bytes less the live bytes at the start of the run (weights, inputs, and in mode
// train their gradients, all from the warm-up run). rss_peak_bytes: VmHWM of the operating system,
// the peak of the whole process since its start, with program and libraries.
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/memory.h"
#include "harness/measure/peak_memory.h"

namespace attn {
namespace {

int64_t rss_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

MemoryFigures measure_memory(Workload& workload) {
  workload.run();  // what is made once (threads' workspaces, gradients) is not the run's own
  workload.forget();
  release_free_memory();
  reset_memory_peak();
  const int64_t before = memory_use().live_total;
  workload.run();
  const MemoryUse use = memory_use();

  MemoryFigures figures;
  figures.peak_bytes = use.peak_total;
  figures.weights_bytes = use.peak[static_cast<int>(Purpose::weights)];
  figures.activations_bytes = use.peak[static_cast<int>(Purpose::activations)];
  figures.workspace_bytes = use.peak[static_cast<int>(Purpose::workspace)];
  figures.extra_bytes = use.peak_total - before;
  const WorkloadSpec& spec = workload.spec();
  if (spec.mode == Mode::forward && spec.scope == ScopeKind::attention) {
    figures.declared_extra_bytes.reset();
    if (const std::optional<Cost>& cost = workload.attention_cost())
      figures.declared_extra_bytes = std::llround(cost->peak_bytes);
  }
  figures.rss_peak_bytes = rss_peak_bytes();
  figures.state_bytes = workload.state_bytes();  // last: it may make a decoder
  return figures;
}

}  // namespace attn
