// Parallel loops. Only this file starts threads: by OpenMP, or by std::thread in a child of fork(),
// which libgomp does not survive, and under ThreadSanitizer, which does not understand libgomp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/function.h"

namespace attn {

void set_threads(int count);  // for later loops of this thread; count >= 1
int threads();
int hardware_threads();  // cores that this process may use
// From now on thread i of a loop over at most cpus.size() threads stays on processor cpus[i], which
// this process must be allowed to use. Error where the system refuses.
void pin_threads(const std::vector<int>& cpus);

// Sets the number of threads during its lifetime.
class ScopedThreads {
 public:
  explicit ScopedThreads(int count) { set_threads(count); }
  ~ScopedThreads() { set_threads(before_); }
  ScopedThreads(const ScopedThreads&) = delete;
  ScopedThreads& operator=(const ScopedThreads&) = delete;

 private:
  const int before_ = threads();
};

// Calls body(begin, end) for disjoint ranges that cover [0, count). The sizes of the ranges, except
// the last one, are multiples of `grain`. The schedule is static: the same number of threads gives
// the same bits. A nested call, or a call with a single range, runs on the calling thread. An
// exception in a body is rethrown to the caller. The bodies inherit MemoryScope and NoGrad of the
// caller.
void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace attn
