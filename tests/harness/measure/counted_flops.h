// The FLOPs that the kernels of a workload count.
#pragma once

#include "core/base/counters.h"
#include "harness/measure/workload.h"

namespace attn {

inline double counted_flops(Workload& workload) {
  workload.run();  // the first makes what later ones reuse
  const double before = counters().flops;
  workload.run();
  return counters().flops - before;
}

}  // namespace attn
