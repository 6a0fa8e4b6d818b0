// Decoding by exact softmax attention with a KV cache of all positions or, for a window, a ring
// buffer of the last ones. A step costs 4·d FLOPs for each query and cached position. It reads 2·d
// numbers for each position, once for all queries of a group.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"

namespace attn {

// `window`: visible positions before the query's own; -1: all. Logits are scaled by
// 1/sqrt(head_dim). `sinks`, where defined: for each query head a logit [kv_heads·group] without a
// value, which takes its share of every row (natural units; read at each step).
std::unique_ptr<Decoder> softmax_decoder(const Shape& position, int64_t capacity,
                                         int64_t window = -1, const Tensor& sinks = {});
// The same with a cache of bfloat16, half as large. It takes steps in bfloat16 alone.
std::unique_ptr<Decoder> bfloat16_softmax_decoder(const Shape& position, int64_t capacity,
                                                  int64_t window = -1);

}  // namespace attn
