// Timing with the loop and the clock of Google Benchmark. A reporter keeps the raw samples and
// prints nothing. Costs warmup_s + about (repetitions + 1)·min_sample_s, or repetitions + 2 runs if
// longer.
#include <benchmark/benchmark.h>

#include <chrono>
#include <exception>

#include "harness/measure/speed.h"

namespace attn {
namespace {

// Whether a run ended by an error or a skip: Google Benchmark 1.8 replaced the flag
// `error_occurred` by the state `skipped`, whose 0 is "not skipped". A template, so that only the
// member that exists is compiled; the library has no version macro before 1.9.
template <class Run>
bool has_no_time(const Run& run) {
  if constexpr (requires { run.skipped; })
    return run.skipped != decltype(run.skipped){};
  else
    return run.error_occurred;
}

class SampleReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (has_no_time(run) || run.run_type != Run::RT_Iteration) continue;
      samples.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }
  std::vector<double> samples;
};

// Google Benchmark's registry is global: it is left empty, whatever happens.
class Registration {
 public:
  Registration() { benchmark::ClearRegisteredBenchmarks(); }
  ~Registration() { benchmark::ClearRegisteredBenchmarks(); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
};

void warm_up(FunctionRef<void()> run, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  do {
    run();
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           seconds);
}

}  // namespace

std::vector<double> time_samples(Workload& workload, const TimingOptions& options) {
  return time_samples([&] { workload.run(); }, options);
}

std::vector<double> time_samples(FunctionRef<void()> run, const TimingOptions& options) {
  ATTN_CHECK(options.repetitions >= 1 && options.min_sample_s > 0,
             "timing needs repetitions >= 1 and min_sample_s > 0");
  warm_up(run, options.warmup_s);
  std::exception_ptr failure;
  const Registration registration;
  benchmark::RegisterBenchmark(
      "run",
      [&](benchmark::State& state) {
        if (failure) return state.SkipWithError("failed before");
        for ([[maybe_unused]] auto iteration : state) {
          try {
            run();
          } catch (...) {  // an exception must not unwind through the library
            failure = std::current_exception();
            state.SkipWithError("threw");
            break;
          }
        }
      })
      ->UseRealTime()
      ->MinTime(options.min_sample_s)
      ->Repetitions(options.repetitions);
  SampleReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, "run");
  if (failure) std::rethrow_exception(failure);
  ATTN_CHECK(reporter.samples.size() == static_cast<size_t>(options.repetitions),
             "{} samples were asked for, {} came back", options.repetitions,
             reporter.samples.size());
  return reporter.samples;
}

PairedSamples time_in_turn(FunctionRef<void()> first, FunctionRef<void()> second,
                           const TimingOptions& options) {
  warm_up(first, options.warmup_s);
  warm_up(second, options.warmup_s);
  TimingOptions one = options;
  one.repetitions = 1;
  one.warmup_s = 0;
  PairedSamples samples;
  for (int i = 0; i < options.repetitions; ++i) {
    samples.first.push_back(time_samples(first, one)[0]);
    samples.second.push_back(time_samples(second, one)[0]);
  }
  return samples;
}

}  // namespace attn
