// Contiguous blocks of positions that see themselves and whole neighbouring blocks: the block
// pattern, and the ring buffer for decoding. O(visible blocks).
#pragma once

#include <cstdint>
#include <memory>

#include "variants/patterns/pattern_decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct NeighbourBlocks {
  int64_t size = 256;           // positions of a block
  int64_t back = 0, ahead = 0;  // visible blocks before a query's own, and after it

  std::shared_ptr<const BlockPattern> pattern(int64_t len) const;
  CacheLayout cache(int64_t capacity) const;  // requires ahead = 0
  Cost cost(const AttentionShape& shape) const;
};

}  // namespace attn
