// Contiguous blocks that see themselves and whole neighbours: as a block pattern, and as the ring
// that decoding keeps. O(blocks seen).
#pragma once

#include <cstdint>
#include <memory>

#include "variants/patterns/pattern_decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct NeighbourBlocks {
  int64_t size = 256;           // positions of a block
  int64_t back = 0, ahead = 0;  // blocks seen before a query's own, and after it

  std::shared_ptr<const BlockPattern> pattern(int64_t len) const;
  CacheLayout cache(int64_t capacity) const;  // causal: `ahead` is 0
  Cost cost(const AttentionShape& shape) const;
};

}  // namespace attn
