// The one place that starts threads (OpenMP; std::thread under ThreadSanitizer, which cannot see
// into libgomp).
#pragma once

#include <cstdint>

#include "core/base/function.h"

namespace attn {

void set_threads(int count);  // for the loops started by this thread from now on; count >= 1
int threads();
int hardware_threads();  // cores this process may run on

// body(begin, end) over disjoint ranges that cover [0, count). Ranges are whole multiples of
// `grain` (but for the last) and handed out statically, so the same thread count gives the same
// bits. Runs inline when nested, or when one range suffices. An exception in a body is rethrown
// here. MemoryScope and NoGrad of the caller hold in the bodies.
void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace attn
