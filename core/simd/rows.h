// Parallel and vectorised loops over elements. Sums and elementwise functions are in row_ops.h.
#pragma once

#include <cstdint>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/real.h"
#include "core/simd/row_ops.h"

// Marks a loop with independent iterations, even if its pointers are equal (an op in place). The
// compiler vectorises the loop for the build's -march, so it should be bound by memory bandwidth.
#ifdef __clang__
#define ATTN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ATTN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace attn {

// parallel_for for cheap loops: runs on the calling thread if there are too few elements.
template <class Body>
void over_range(int64_t count, int64_t work_each, const Body& body) {
  if (count <= 0) return;
  const KernelMark mark(Part::elementwise);
  constexpr int64_t kWorth = 1 << 15;  // minimum elements of a thread: about 10 µs
  if (count * work_each < 2 * kWorth || threads() == 1)
    body(int64_t{0}, count);
  else
    parallel_for(count, (kWorth + work_each - 1) / (work_each > 0 ? work_each : 1), body);
}

}  // namespace attn
