// The mean of the visible rows: of all valid rows or, causal, of the rows up to each position.
// 2·len·width FLOPs, no weights. Sums are in double, since a long sum in float would lose bits.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/mixer.h"

namespace attn {

// x [batch, len, width] -> the same shape. Row i is the mean of the rows j < kv_lengths[b] (causal:
// and j <= i); zeros if there is no such row.
Var running_mean(const Var& x, const Mask& mask);

Cost mean_cost(int64_t batch, int64_t len, int64_t width);

std::unique_ptr<Decoder> mean_decoder(const Shape& position, int64_t capacity);

}  // namespace attn
