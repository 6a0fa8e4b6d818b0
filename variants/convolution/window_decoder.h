// Decoding by a window: the last rows, as many as lie before a position in its window, and layers
// on those and the position's own. A step costs 2·in·out FLOPs for each layer and reads its weight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "variants/api/mixer.h"

namespace attn {

struct WindowLayer {
  Tensor weight;  // [.., in, out], all dimensions but the last as rows
  Tensor bias;    // [out], undefined: none
};

// `kernel` rows a window, the last one the position's own; tanh between the layers.
std::unique_ptr<Decoder> window_decoder(const Shape& position, int64_t capacity, int64_t kernel,
                                        std::vector<WindowLayer> layers);

}  // namespace attn
