// Decoding by native sparse attention: the cache of block_decoder.h with rows that stand for blocks
// of keys and of values, and three gates a position and query head. A step reads 2·d numbers for
// each such row, for each key of the window, and of the blocks that queries of a group choose
// together.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/cost.h"
#include "variants/selection/block_decoder.h"
#include "variants/selection/block_network.h"

namespace attn {

struct BranchOptions {
  int64_t block = 64;
  int64_t most = 15;     // chosen blocks beside the own one
  int64_t shared = 1;    // neighbouring query heads that choose together
  int64_t window = 511;  // keys before the query that the last branch sees
  CompressedBlocks compressed = {64, 64};
  BlockNetwork keys = {}, values = {};  // undefined: means

  // Of a sequence: those of means may end with one of fewer rows.
  int64_t rows(int64_t len) const {
    return keys.defined() ? std::max<int64_t>(1, compressed.ended(len)) : (len + block - 1) / block;
  }
};

// Null where neither the group of query heads that share keys nor `shared` divides the other.
std::unique_ptr<Decoder> branch_decoder(const Shape& position, int64_t capacity,
                                        const BranchOptions& options);

// Of the forward and of this decoder's state.
Cost branch_cost(const AttentionShape& shape, const BranchOptions& options);

}  // namespace attn
