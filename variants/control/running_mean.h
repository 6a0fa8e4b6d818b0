// The mean of visible rows: all valid ones, or those up to each position. 2·len·width FLOPs, no
// weights. Sums are kept in double: a long one in float would lose the last bits.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/mixer.h"

namespace attn {

// x [batch, len, width] -> the same. Row i is the mean of rows j < kv_lengths[b] (causal: j <= i
// too), zeros where there is none.
Var running_mean(const Var& x, const Mask& mask);

Cost mean_cost(int64_t batch, int64_t len, int64_t width);

std::unique_ptr<Decoder> mean_decoder(const Shape& position, int64_t capacity);

}  // namespace attn
