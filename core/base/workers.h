// Distributes tasks over threads. Each worker has one preallocated workspace, so that the peak
// memory of a kernel is a formula of its shape and the number of threads. The result of a task must
// not depend on the worker that runs it; then the same number of threads gives the same bits. The
// division into tasks may depend on threads().
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/real.h"

namespace attn {

inline int64_t worker_count(int64_t tasks) {
  return std::max<int64_t>(1, std::min<int64_t>(tasks, threads()));
}

inline int64_t workspace_bytes(int64_t tasks, int64_t reals) {
  return worker_count(tasks) * padded_reals(reals) * static_cast<int64_t>(sizeof(real));
}

// Into how many parts each of `units` equal units is divided, so that no thread waits long: none
// where they divide evenly among the threads or are many.
inline int64_t parts_of_units(int64_t units) {
  return units % threads() == 0 || units >= 4 * threads() ? 1 : threads();
}

// Calls body(task, workspace) for every task in [0, tasks). The workspace holds `reals`
// uninitialised numbers.
template <class Body>
void run_tasks(int64_t tasks, int64_t reals, Body&& body) {
  if (tasks == 0) return;
  const int64_t workers = worker_count(tasks);
  Block block;
  if (reals > 0)
    block = Block(static_cast<size_t>(workspace_bytes(tasks, reals)), Purpose::workspace);
  real* const base = static_cast<real*>(block.data());
  parallel_for(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      real* const work = base + w * padded_reals(reals);
      for (int64_t t = tasks * w / workers; t < tasks * (w + 1) / workers; ++t) body(t, work);
    }
  });
}

}  // namespace attn
