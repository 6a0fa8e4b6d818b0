// Decoding by kernel attention: the state S = Σ φ(k)ᵀv, z = Σ φ(k) of constant size, whatever the
// context. Katharopoulos et al. 2020 (arXiv:2006.16236), eqs. 18-20. A step costs 2·m·(d+1) FLOPs
// for the key and for each query of its group, beside their features; it reads and writes the
// state, and reads the map's directions.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"
#include "variants/features/feature_maps.h"

namespace attn {

// Null for groups where each query head has directions of its own.
std::unique_ptr<Decoder> linear_decoder(const Shape& position, int64_t capacity,
                                        const FeatureMap& map);

}  // namespace attn
