// The diagonal recurrence of the linear recurrent unit: complex states of complex inputs, h =
// a⊙h + γ⊙x. Orvieto et al. 2023, arXiv:2303.06349, eqs. 2-8. Costs 10 FLOPs for each state and
// position, and reads and writes two numbers of each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"

namespace attn {

inline constexpr int64_t kComplexFlops = 10, kComplexBackwardFlops = 8 + 8 + 4 + 2;

// x [batch, len, 2·states], real parts and then imaginary ones; taps [3, states]: real and
// imaginary parts of a, and γ -> the states h of every position, as x. Positions at or beyond
// `lengths` are not read, and their states are 0. Differentiable by both.
Var complex_scan(const Var& x, const Var& taps, const std::vector<int64_t>& lengths = {});

struct ComplexWeights {
  Tensor taps;           // of complex_scan()
  Tensor input, output;  // [width, 2·states] before it, [2·states, width] after it
};
// Decodes rows of the layer from the states of each sequence. A step makes both products for all
// rows of the batch.
std::unique_ptr<Decoder> complex_decoder(const Shape& position, int64_t capacity,
                                         ComplexWeights weights);

}  // namespace attn
