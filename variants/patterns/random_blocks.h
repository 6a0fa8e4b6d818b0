// The visible blocks of BigBird: a block of queries sees its neighbours, the global blocks at both
// ends, whose queries see all keys, and random blocks. Zaheer et al. 2020, arXiv:2007.14062,
// section 2. O(visible blocks) time. Causal: only the first blocks are global, and random blocks
// are earlier ones.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "variants/patterns/pattern_decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct RandomBlocks {
  int64_t size = 64;              // positions of a block
  int64_t before = 1, after = 1;  // neighbouring blocks
  int64_t first = 1, last = 1;    // global blocks at the two ends
  int64_t random = 3;
  // Random blocks are drawn from the first `pool` positions.
  int64_t pool = std::numeric_limits<int64_t>::max();
  bool causal = false;
  uint64_t seed = 0;

  // Lists for each length (one for each batch entry, or one for all) and each head.
  std::shared_ptr<const BlockPattern> pattern(int64_t heads, int64_t len,
                                              std::span<const int64_t> lengths) const;
  // Appends the visible blocks of block b, out of `count` blocks of keys, ascending.
  void append(int64_t head, int64_t b, int64_t count, IndexList& seen) const;
  // For causal decoding: the cache has all positions. Random blocks are drawn for each of `heads`.
  CacheLayout cache(int64_t heads, int64_t capacity) const;
};

}  // namespace attn
