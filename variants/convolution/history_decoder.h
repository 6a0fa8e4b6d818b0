// Decoding of a long convolution, which has no state of constant size: the state is every row so
// far, and a step is a sum over all of them: 2·length FLOPs a channel.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"

namespace attn {

// The rows are v, or k ⊙ v where `gated`, and outputs are then multiplied by q. filter [taps >=
// capacity, heads·head_dim], from distance 0 on; skip [heads·head_dim] or undefined. position
// [batch, heads, 1, head_dim].
struct HistoryFilter {
  Tensor filter, skip;
  bool gated = false;
};
std::unique_ptr<Decoder> history_decoder(const Shape& position, int64_t capacity,
                                         const HistoryFilter& by);

}  // namespace attn
