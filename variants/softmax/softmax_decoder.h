// Decoding by exact softmax attention with a KV cache of all positions, of the last ones (a ring
// buffer), or of the first and the last ones. A step costs 4·d FLOPs for each query and cached
// position. It reads 2·d numbers for each position, once for all queries of a group.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/cache_type.h"
#include "variants/api/decoder.h"

namespace attn {

// `window`: visible positions before the query's own; -1: all. Logits are scaled by
// 1/sqrt(head_dim). `sinks`, where defined: for each query head a logit [kv_heads·group] without a
// value, which takes its share of every row (natural units; read at each step).
std::unique_ptr<Decoder> softmax_decoder(const Shape& position, int64_t capacity,
                                         int64_t window = -1, const Tensor& sinks = {});
// softmax_decoder() without sinks, whose queries also see the first `first` positions.
std::unique_ptr<Decoder> band_softmax_decoder(const Shape& position, int64_t capacity,
                                              int64_t window, int64_t first);
// softmax_decoder() with a bias of each logit, see logit_bias.h. `distances` [kv_heads·group,
// positions]: the bias of keys at distance 0, 1, ... before the query.
std::unique_ptr<Decoder> distance_softmax_decoder(const Shape& position, int64_t capacity,
                                                  int64_t window, const Tensor& distances);
// A position of each head comes with a gate x of width 1: log σ(x) of all steps between key and
// query is added. position[2] is 1.
std::unique_ptr<Decoder> gated_softmax_decoder(const Shape& position, int64_t capacity);
// softmax_decoder() with a cache of bfloat16, half as large. It takes steps in bfloat16 alone.
std::unique_ptr<Decoder> bfloat16_softmax_decoder(const Shape& position, int64_t capacity,
                                                  int64_t window = -1);

// What a decoder with a cache of another type has of the above.
struct TypedDecoderOptions {
  int64_t window = -1;
  Tensor sinks = {};
  bool gates = false;
};
// softmax_decoder() and gated_softmax_decoder() with a cache of any type; it takes steps in either
// dtype. Of integers, the last kRecentPositions positions are held in float32 too, and read there.
std::unique_ptr<Decoder> typed_softmax_decoder(const Shape& position, int64_t capacity,
                                               CacheType cache,
                                               const TypedDecoderOptions& options = {});
// The bytes of its state, gates aside, for so many heads and positions that a query can see.
int64_t typed_cache_bytes(CacheType cache, int64_t heads, int64_t positions, int64_t dim);

}  // namespace attn
