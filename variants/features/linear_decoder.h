// Decoding by linear attention. The state S = Σ φ(k)ᵀv, z = Σ φ(k) has a constant size.
// Katharopoulos et al. 2020 (arXiv:2006.16236), eqs. 18-20. A step costs 2·m·(d+1) FLOPs for the
// key and for each query of its group, plus their features. It reads and writes the state, and
// reads the directions of the map.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"
#include "variants/features/feature_maps.h"

namespace attn {

// Null where query heads share keys but have directions or gates of their own. `gated`: every
// position comes with a gate, see LinearOptions.
std::unique_ptr<Decoder> linear_decoder(const Shape& position, int64_t capacity,
                                        const FeatureMap& map, bool gated = false);

}  // namespace attn
