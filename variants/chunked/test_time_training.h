// Test-time training of a linear model: its weights W [dim, dim] and b [dim] are the state, which
// each position trains by a step of gradient descent on |LN(k·W + b) - (v - k)|²/2. Sun et al.
// 2024, arXiv:2407.04620, section 2.7: all gradients of a mini-batch are taken at its start,
//   z_j = k_j·W + b,  G_j = the gradient of z_j,  η_ij = token_rate_i·rate_j
//   y_i = q_i·W + b - Σ_{j<=i} η_ij·(q_i·k_j + 1)·G_j,  o_i = q_i + LN(y_i)     (the dual form)
//   W_next = W - Σ_j η_last,j·k_jᵀ·G_j,  b_next = b - Σ_j η_last,j·G_j
// with i and j from 0 within the mini-batch. About 6·n·d² + 4·n·mini_batch·d FLOPs, the backward 16
// and 12; memory n·d, with gradients the state of each mini-batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

struct TrainingInputs {
  Var q, k, v;      // [batch, heads, len, dim]
  Var rate;         // [batch, heads, len, 1]
  Var token_rates;  // [mini_batch]
  Var gain, shift;  // of LN [heads, dim]
  Var weights;      // W before the first mini-batch [heads, dim, dim]
  Var bias;         // b [heads, dim]
};

struct TrainingOptions {
  // false: neither LN nor b: G_j = z_j - (v_j - k_j), and the output is y. With mini-batches of 1
  // and v + k for v, this is the delta rule.
  bool normalise = true;
  // Valid positions of each batch entry, as in Mask; empty: all. Padding trains nothing and is
  // never read, except for its queries, which meet the model as the last valid position left it;
  // without valid positions outputs are 0.
  std::vector<int64_t> kv_lengths = {};
};

inline constexpr double kTrainingEpsilon = 1e-6;  // of LN, as in the authors' code

// The output [batch, heads, len, dim]; differentiable by all inputs.
Var test_time_training(const TrainingInputs& inputs, const TrainingOptions& options = {});

Cost training_cost(const AttentionShape& shape, int64_t mini_batch);

// A state of 2·(d² + d) numbers a head: W and b, and the sums of gradients of the mini-batch. Each
// rate is factor·σ(gate). Null where query heads share keys.
struct TrainingWeights {
  Var token_rates, gain, shift, weights, bias;
};
std::unique_ptr<Decoder> training_decoder(const Shape& position, int64_t capacity,
                                          const TrainingWeights& weights, double factor);

}  // namespace attn
