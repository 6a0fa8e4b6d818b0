// The sizes into which the softmax forward divides its work, for people and scripts to look at. The
// constants themselves are private to the engine (forward_layout.h).
#pragma once

#include <cstdint>

namespace attn {

struct ForwardSizes {
  int64_t strip = 0, wide_strip = 0;    // queries whose logits are made together
  int64_t piece = 0, narrow_piece = 0;  // keys that a strip takes at a time
  // Queries of a tile, which packs its keys once. The most are for heads of 64; by the cache.
  int64_t tile_least = 0, tile_most = 0;
};
ForwardSizes forward_sizes();

}  // namespace attn
