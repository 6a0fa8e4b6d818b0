// What decoding a band keeps: the global positions, and a ring of the last ones. O(global +
// window).
#pragma once

#include "variants/patterns/pattern_decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Of causal softmax_attention with a window; patterns are another matter.
CacheLayout band_cache(const SoftmaxOptions& options, int64_t capacity);

}  // namespace attn
