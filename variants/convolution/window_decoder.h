// Decoding of a causal window: the state is the last kernel - 1 rows. A step applies the layers to
// these rows and the new one. It costs 2·in·out FLOPs for each layer and reads the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "variants/api/mixer.h"

namespace attn {

struct WindowLayer {
  Tensor weight;  // [.., out]; all dimensions but the last are inputs
  Tensor bias;    // [out]; undefined: none
};

// A window has `kernel` rows; the last one is the position's own. tanh between the layers.
std::unique_ptr<Decoder> window_decoder(const Shape& position, int64_t capacity, int64_t kernel,
                                        std::vector<WindowLayer> layers);

}  // namespace attn
