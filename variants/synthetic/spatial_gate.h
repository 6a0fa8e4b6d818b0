// The spatial gating unit of gMLP: one half of the channels times a learned mixture of the other
// half's positions. Liu et al. 2021, arXiv:2105.08050, section 3.1. 2·n²·units FLOPs.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"

namespace attn {

struct SpatialGateWeights {
  Var in, in_bias;            // [width, 2·units], [2·units]
  Var gain, shift;            // of the norm, [units]
  Var spatial, spatial_bias;  // [max_len, max_len], [max_len, 1]
  Var out, out_bias;          // [units, width], [width]
};

// x [batch, len, width] -> the same shape; rows of padding are zeros.
Var spatial_gate(const Var& x, const SpatialGateWeights& weights, const Mask& mask);

// The state is the normalised half of all positions, units numbers each.
std::unique_ptr<Decoder> spatial_gate_decoder(const Shape& position, int64_t capacity,
                                              const SpatialGateWeights& weights);

}  // namespace attn
