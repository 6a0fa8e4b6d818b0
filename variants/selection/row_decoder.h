// Decoding by compressed sparse attention: a ring of the last keys and values, a key and a value of
// each block that has ended, the block that has not, and the one before it; and, where an indexer
// chooses, its key of each block. A step reads 2·d numbers a key that it sees.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"
#include "variants/selection/gated_blocks.h"
#include "variants/selection/indexer.h"

namespace attn {

struct RowOptions {
  BlockGates by;
  int64_t window = 127;  // keys before the query, besides its own
  int64_t keys = 0;      // rows that a query sees; 0: all
  Indexer indexer = {};  // of all heads, which chooses among more
  Tensor sinks = {};     // [heads]; undefined: none

  bool chooses() const { return keys > 0; }
};

// position[2] must be 1: each query head has rows of its own.
std::unique_ptr<Decoder> row_decoder(const Shape& position, int64_t capacity,
                                     const RowOptions& options);

// What the decoder holds of a head, and of the indexer's keys of a sequence, in numbers.
int64_t row_state_reals(const RowOptions& options, int64_t capacity);
int64_t row_index_reals(const RowOptions& options, int64_t capacity);

}  // namespace attn
