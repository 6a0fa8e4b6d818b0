// Decoding by attention to the keys that an indexer of all heads chooses: a cache of keys and
// values of each head, and of the indexer's keys of each sequence. A step scores all t positions
// once a sequence, 2·t·index_heads·index_dim FLOPs, and reads what is kept.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/selection/indexer.h"

namespace attn {

std::unique_ptr<Decoder> shared_choice_decoder(const Shape& position, int64_t capacity,
                                               int64_t keep, const Indexer& indexer);

}  // namespace attn
