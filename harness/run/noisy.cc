// See noisy.h.
#include "harness/run/noisy.h"

namespace attn {

bool fell(const Witness& seen, const Witness& best, bool is_memory_bound) {
  return seen.flops_per_s < kFallen * best.flops_per_s ||
         (is_memory_bound && seen.copy_bytes_per_s < kFallen * best.copy_bytes_per_s);
}

std::vector<Noise> noise_of(bool witness_fell, const Disturbance& found, int64_t threads,
                            int64_t cores) {
  std::vector<Noise> noise;
  if (witness_fell) noise.push_back(Noise::witness);
  const double machine_s = found.seconds * static_cast<double>(cores);
  if (found.stolen_s.value_or(0) > kMostStolen * machine_s) noise.push_back(Noise::steal);
  const double thread_s = found.seconds * static_cast<double>(threads);
  // One switch more than the rule allows can be chance in a visit of milliseconds.
  if (static_cast<double>(found.involuntary_switches) > 1 + kMostSwitches * thread_s)
    noise.push_back(Noise::switches);
  return noise;
}

}  // namespace attn
