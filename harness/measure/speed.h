// Times a workload with Google Benchmark as a library.
#pragma once

#include <vector>

#include "harness/measure/workload.h"

namespace attn {

struct TimingOptions {
  int repetitions = 5;         // samples
  double min_sample_s = 0.02;  // a sample repeats run() for at least this time
  double warmup_s = 0.05;
};
std::vector<double> time_samples(
    Workload& workload,
    const TimingOptions& options);  // seconds per run(), one per sample

}  // namespace attn
