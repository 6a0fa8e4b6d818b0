// Loops over ranges of elements: what is shared by threads, and what compilers may vectorise. Sums
// and everything that computes are in row_ops.h.
#pragma once

#include <cstdint>

#include "core/base/parallel.h"
#include "core/base/real.h"
#include "core/simd/row_ops.h"

// Before a loop whose iterations are independent even where its pointers are the same (an op in
// place). Such a loop runs on the instructions of the build's -march: it should wait for memory.
#ifdef __clang__
#define ATTN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ATTN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace attn {

// parallel_for without its cost where `work` elements of a cheap loop are too few to share.
template <class Body>
void over_range(int64_t count, int64_t work_each, const Body& body) {
  if (count <= 0) return;
  constexpr int64_t kWorth = 1 << 15;  // elements a thread should have: about 10 µs
  if (count * work_each < 2 * kWorth || threads() == 1)
    body(int64_t{0}, count);
  else
    parallel_for(count, (kWorth + work_each - 1) / (work_each > 0 ? work_each : 1), body);
}

}  // namespace attn
