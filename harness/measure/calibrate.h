// The limits of the machine: the multiply-add peak and the copy bandwidth.
#pragma once

namespace attn {

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

}  // namespace attn
