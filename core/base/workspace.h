// The parts of a worker's workspace: each begins on a cache line.
#pragma once

#include <cstdint>

#include "core/base/memory.h"

namespace attn {

// Hands out the offsets of parts, in numbers.
class WorkspaceParts {
 public:
  int64_t take(int64_t reals) {
    const int64_t at = total_;
    total_ += padded_reals(reals);
    return at;
  }
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

}  // namespace attn
