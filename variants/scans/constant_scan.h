// A diagonal state space whose factors are the same at every position, with complex states of each
// channel: h_n = a_n·h_n + x, out = Re Σ_n c_n·h_n. Gu et al. 2022, arXiv:2206.11893, eq. 1 as a
// recurrence. Equal to the convolution with the kernel Re Σ_n c_n·a_n^t. Costs 12 FLOPs for each
// state and position; nothing is exponentiated at a position.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

inline constexpr int64_t kConstantFlops = 12;  // of a state and position

// x [batch, heads, len, dim], taps [4, heads, states, dim]: real and imaginary parts of a, then of
// c -> [batch, heads, len, dim]. Positions at or beyond `lengths` are not read, and their outputs
// are 0. Differentiable by both. A state is kept every 32 positions; none without gradients.
Var constant_scan(const Var& x, const Var& taps, const std::vector<int64_t>& lengths = {});

Cost constant_cost(const AttentionShape& shape, int64_t states);

// Decodes from a state of 2·states·dim numbers a head. Null where query heads share a state.
std::unique_ptr<Decoder> constant_decoder(const Shape& position, int64_t capacity,
                                          const Tensor& taps);

}  // namespace attn
