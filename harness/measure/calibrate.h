// The measured limits of the machine: peak rate of multiply-adds and copy bandwidth.
#pragma once

namespace attn {

struct Calibration {
  double fma_flops_per_s_one = 0, fma_flops_per_s_all = 0;  // with one thread and with all
  // Bytes read plus bytes written, for data much larger than the caches, with one thread and all.
  double copy_bytes_per_s_one = 0, copy_bytes_per_s = 0;
  int threads = 1;  // the number of "all" threads
};
Calibration calibrate(
    int threads);  // takes about a second and 512 MiB, more with a very large cache
double peak_of(const Calibration& calibration, int threads);  // FLOPs per second of `threads`
double bandwidth_of(const Calibration& calibration,
                    int threads);  // bytes copied per second of `threads`
// The roofline time in seconds: the larger of flops / peak and bytes / bandwidth. It is a lower
// bound if the bytes come from memory. If all data fit the caches, the time can be shorter.
double roofline_of(const Calibration& calibration, int threads, double flops, double bytes);

}  // namespace attn
