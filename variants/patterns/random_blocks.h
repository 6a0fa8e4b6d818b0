// Which blocks of keys a block of queries sees: its neighbours, the blocks at both ends, whose
// queries see everything, and some drawn at random. Zaheer et al. 2020, arXiv:2007.14062,
// section 2. O(blocks seen) time. Causal: only the first end is global, and random blocks are past.
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
  int64_t before = 1, after = 1;  // neighbours
  int64_t first = 1, last = 1;    // global blocks at either end
  int64_t random = 3;
  int64_t pool = std::numeric_limits<int64_t>::max();  // positions that random blocks come from
  bool causal = false;
  uint64_t seed = 0;

  // Lists for each of the lengths, one a batch entry or one for all, and for each head.
  std::shared_ptr<const BlockPattern> pattern(int64_t heads, int64_t len,
                                              std::span<const int64_t> lengths) const;
  // Appends what block b of a head's queries sees of `count` blocks of keys, ascending.
  void append(int64_t head, int64_t b, int64_t count, IndexList& seen) const;
  // Of decoding, causal: every position is kept. Drawn for each of `heads`, in every batch entry.
  CacheLayout cache(int64_t heads, int64_t capacity) const;
};

}  // namespace attn
