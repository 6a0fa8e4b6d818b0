// The allocation functions of the test program, replaced: they count, and can be told to refuse. In
// builds with AddressSanitizer or ThreadSanitizer, which replace them too, they do neither.
#pragma once

#include <cstdint>

namespace attn {

bool allocations_are_ours();  // whether they count and refuse
int64_t allocations();        // calls of operator new so far, of all threads

// While it lives, operator new throws std::bad_alloc on this thread.
class RefusedMemory {
 public:
  RefusedMemory();
  ~RefusedMemory();
  RefusedMemory(const RefusedMemory&) = delete;
  RefusedMemory& operator=(const RefusedMemory&) = delete;
  static int64_t refusals();  // on this thread, since the last one began
};

}  // namespace attn
