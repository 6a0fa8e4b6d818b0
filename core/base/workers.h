// Splits tasks over threads with one preallocated workspace a worker, so that the peak of a kernel
// is a formula of shape and threads. A task's result must not depend on which worker runs it: then
// the same number of threads gives the same bits. How work is cut into tasks may follow threads().
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

// body(task, workspace) for every task in [0, tasks); the workspace holds `reals` numbers,
// uninitialised.
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
