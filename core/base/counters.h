// Counts of executed FLOPs (2 for each multiply-add) and of bytes moved. A kernel adds to them once
// per call. The checks compare the counts with the declared cost formulas. Thread-safe; a call
// takes a few nanoseconds.
#pragma once

namespace attn {

void count_flops(double flops);
void count_bytes(double bytes);

struct Counters {
  double flops = 0;
  double bytes = 0;
};
Counters counters();  // totals since the start of the process

}  // namespace attn
