// The selective scan of Mamba: states of each channel that decay and are written to as the position
// says. Gu and Dao 2023, arXiv:2312.00752, algorithm 2, with the write in Euler's form as in its
// code. With n states for a channel: h_n = exp(-exp(A_log_n)·Δ)·h_n + Δ·x·write_n,
// out = Σ_n read_n·h_n. Costs an exponential and 6 FLOPs for each state and position.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

struct SelectiveInputs {
  Var x, delta;     // [batch, heads, len, dim]; delta >= 0
  Var write, read;  // [batch, heads, len, states]: B and C
  Var a_log;        // [heads, states, dim]
};

// -> [batch, heads, len, dim]. Positions at or beyond `lengths` are not read, and their outputs are
// 0. Differentiable by all inputs. A state is kept every 32 positions; none without gradients.
Var selective_scan(const SelectiveInputs& inputs, const std::vector<int64_t>& lengths = {});

Cost selective_cost(const AttentionShape& shape, int64_t states);

// Decodes from a state of states·dim numbers a head, with gates Δ before its softplus, B and C.
// Null where query heads share a state.
std::unique_ptr<Decoder> selective_decoder(const Shape& position, int64_t capacity,
                                           const Tensor& a_log);

}  // namespace attn
