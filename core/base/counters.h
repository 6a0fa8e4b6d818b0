// What the kernels really did: multiply-adds (2 FLOPs each) and bytes moved, added once per kernel
// call. Checks compare these with the declared cost formulas. Thread-safe; costs a few nanoseconds
// a call.
#pragma once

namespace attn {

void count_flops(double flops);
void count_bytes(double bytes);

struct Counters {
  double flops = 0;
  double bytes = 0;
};
Counters counters();  // since the start of the process; take differences

}  // namespace attn
