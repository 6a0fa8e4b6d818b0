// Decoding by attention to the keys with the largest scores: a cache of keys and values and, with
// an indexer, of its keys. A step scores all t positions, 2·t·d FLOPs a query, and reads the values
// of those that are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "variants/api/decoder.h"

namespace attn {

// What makes the rows of an indexer, see IndexScores. `head` is one of all batch entries: of keys,
// or of queries.
struct IndexRows {
  int64_t heads = 0, dim = 0;  // heads = 0: there is no indexer
  bool has_relu = true;
  std::function<void(int64_t head, const real* k, real* to)> key;  // to [dim]
  // to [heads·dim], weights [heads]
  std::function<void(int64_t head, const real* q, real* to, real* weights)> query;
  double query_flops = 0, key_flops = 0;  // of one row
};

std::unique_ptr<Decoder> top_decoder(const Shape& position, int64_t capacity, int64_t keep,
                                     const IndexRows& index = {});

}  // namespace attn
