// The measurements behind rows of speed, memory and fidelity, and the machine's own limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// --- speed: Google Benchmark as a library
struct TimingOptions {
  int repetitions = 5;         // samples
  double min_sample_s = 0.02;  // a sample repeats run() until it lasts this long
  double warmup_s = 0.05;
};
std::vector<double> time_samples(Workload& workload,
                                 const TimingOptions& options);  // seconds per run(), one a sample

// --- statistics
// The 97.5 % quantile of Student's t with `degrees` > 0 degrees of freedom.
double student_t_975(size_t degrees);

struct Summary {
  double median = 0, mean = 0, min = 0, mad = 0;  // mad: median absolute deviation
  // 95 %. Of several visits: of the geometric mean, over all visits that might be made, of the
  // median time of a visit, from how the visits' own medians scatter. Of one: of the median of that
  // one process, by seeded bootstrap; how another process would differ is not in it.
  double ci_low = 0, ci_high = 0;
  int64_t n = 0;
};
// `visits`: how many samples each visit (a process of its own) gave, in the order of `samples`;
// empty: one visit gave all.
Summary summarize(const std::vector<double>& samples, const std::vector<int64_t>& visits = {},
                  uint64_t seed = 0);

// --- memory: exact peaks of the counted pool during one run() after a warm-up run, and this
// process's peak RSS Definitions are in memory.cc; run it in a process of its own, or
// rss_peak_bytes tells of what ran before.
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

// --- fidelity: distance from exact softmax attention in double precision
enum class InputKind {
  random,
  needle
};  // needle: each query has one key whose logit stands out, at a random place
std::string to_string(InputKind kind);  // "random", "needle"
// v is N(0, 1). random: q, k are N(0, input_scale²). needle: exact attention at input_scale 1 puts
// at least 0.9 of its weight on the planted key (see inputs.h). `spec` is read for variant, shape,
// causal, threads and seed.
struct FidelityFigures {
  double relative_error = 0;         // ‖out - exact‖_F / ‖exact‖_F
  double cosine = 0;                 // mean over rows of cos(out, exact)
  std::optional<double> weights_kl;  // mean over rows KL(exact ‖ implied weights), where the
                                     // variant's weights are a distribution
};
// Why it has no such distance; nullopt: it has one. Error of measure_fidelity.
std::optional<std::string> why_no_fidelity(const WorkloadSpec& spec);
FidelityFigures measure_fidelity(const WorkloadSpec& spec, InputKind kind, double input_scale);

// --- the machine
struct Calibration {
  double fma_flops_per_s_one = 0, fma_flops_per_s_all = 0;  // measured peak, one thread and all
  // Read + written, far beyond the caches, one thread and all.
  double copy_bytes_per_s_one = 0, copy_bytes_per_s = 0;
  int threads = 1;  // meant by "all"
};
Calibration calibrate(
    int threads);  // takes about a second and 512 MiB (more beside a very large cache)
double peak_of(const Calibration& calibration, int threads);  // FLOPs a second of so many threads
double bandwidth_of(const Calibration& calibration,
                    int threads);  // bytes copied a second, likewise
// Seconds: the larger of FLOPs over the peak and bytes over the copy bandwidth. A floor where the
// bytes come from memory; where all fits in caches the time can be below it.
double roofline_of(const Calibration& calibration, int threads, double flops, double bytes);

// Name and value pairs in a fixed order: version, commit, dirty, compiler, flags, build_type,
// libraries, instruction set, cpu_model, caches, cores, memory_bytes, kernel, governor,
// load_before, benchmark_library_build …
struct EnvironmentField {
  std::string name, value;  // an empty value: unknown here, null in a row
  bool is_number = false;
  bool is_flag = false;  // value is "true" or "false"
};
std::vector<EnvironmentField> environment();

}  // namespace attn
