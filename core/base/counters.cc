// Totals of the process; see counters.h. The atomics are relaxed, since only differences between
// calls matter.
#include "core/base/counters.h"

#include <atomic>

namespace attn {
namespace {

std::atomic<double> total_flops = 0, total_bytes = 0;

void add_to(std::atomic<double>& total, double amount) {
  double seen = total.load(std::memory_order_relaxed);
  while (!total.compare_exchange_weak(seen, seen + amount, std::memory_order_relaxed)) {
  }
}

}  // namespace

void count_flops(double flops) { add_to(total_flops, flops); }
void count_bytes(double bytes) { add_to(total_bytes, bytes); }

Counters counters() {
  return {total_flops.load(std::memory_order_relaxed), total_bytes.load(std::memory_order_relaxed)};
}

}  // namespace attn
