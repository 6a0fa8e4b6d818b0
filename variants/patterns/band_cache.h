// The cache for decoding a band: the global positions, and a ring buffer of the last positions.
// O(global + window).
#pragma once

#include "variants/patterns/pattern_decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

// For causal softmax_attention() with a window and without a block pattern.
CacheLayout band_cache(const SoftmaxOptions& options, int64_t capacity);

}  // namespace attn
