// The constants of forward_layout.h by name; see forward_sizes.h.
#include "variants/softmax/forward_sizes.h"

#include "variants/softmax/forward_layout.h"

namespace attn {

ForwardSizes forward_sizes() {
  return {
      .strip = kForwardStrip,
      .wide_strip = kForwardWideStrip,
      .piece = kForwardPiece,
      .narrow_piece = kNarrowPiece,
      .tile_least = ForwardDivision::kMinRows,
      .tile_most = ForwardDivision::most_rows({.dim = 64, .value_dim = 64}, second_level_cache())};
}

}  // namespace attn
