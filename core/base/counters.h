// Counts of executed FLOPs (2 for each multiply-add) and of bytes moved. A kernel adds to them once
// per call. The checks compare the counts with the declared cost formulas. Thread-safe; a call
// takes a few nanoseconds.
#pragma once

#include <cstdint>

namespace attn {

void count_flops(double flops);
void count_bytes(double bytes);

// What one thread does within a call: added up where it is done, and counted at the end.
class Tally {
 public:
  Tally() = default;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() {
    count_flops(flops_);
    count_bytes(bytes_);
  }
  void multiply_adds(int64_t count) { flops_ += 2 * static_cast<double>(count); }
  void other_flops(int64_t count) { flops_ += static_cast<double>(count); }
  template <class T>
  void moved(int64_t count) {  // numbers read or written
    bytes_ += static_cast<double>(sizeof(T)) * static_cast<double>(count);
  }

 private:
  double flops_ = 0, bytes_ = 0;
};

struct Counters {
  double flops = 0;
  double bytes = 0;
};
Counters counters();  // totals since the start of the process

}  // namespace attn
