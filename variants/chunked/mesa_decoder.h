// Decoding of the mesa layer: H and R of mesa.cc, 2·d² numbers a head; a step updates both, solves
// by conjugate gradients and reads R: (iterations + 3)·2·d² FLOPs.
#pragma once

#include <memory>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"

namespace attn {

inline constexpr double kLeastRidge = 0.25;  // of λ = softplus(ridge) + 0.25

// Null where query heads share keys. ridge [heads, head_dim].
std::unique_ptr<Decoder> mesa_decoder(const Shape& position, int64_t capacity, const Var& ridge,
                                      int64_t iterations);

}  // namespace attn
