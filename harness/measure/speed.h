// Times a workload with Google Benchmark as a library.
#pragma once

#include <vector>

#include "core/base/function.h"
#include "harness/measure/workload.h"

namespace attn {

struct TimingOptions {
  int repetitions = 5;         // samples
  double min_sample_s = 0.02;  // a sample repeats run() for at least this time
  double warmup_s = 0.05;
};
// Seconds of one call of `run`, one per sample.
std::vector<double> time_samples(FunctionRef<void()> run, const TimingOptions& options);
std::vector<double> time_samples(Workload& workload, const TimingOptions& options);  // of its run()

// Of two that are compared: a sample of each in turn, so that what changes on the machine changes
// both. Each sample has a warm-up run of its own.
struct PairedSamples {
  std::vector<double> first, second;
};
PairedSamples time_in_turn(FunctionRef<void()> first, FunctionRef<void()> second,
                           const TimingOptions& options);

}  // namespace attn
