// What variants of the delta rule share: rows of length 1, the strength of a write, and their
// reference. Yang et al. 2024, arXiv:2406.06484, section 2 and appendix A.
#pragma once

#include <cstdint>
#include <vector>

#include "variants/api/cost.h"
#include "variants/api/gates.h"
#include "variants/api/reference.h"
#include "variants/chunked/state_decoder.h"

namespace attn {

inline constexpr double kUnitEpsilon = 1e-6;  // added to the square of a row's length

// factor·x/√(|x|² + kUnitEpsilon) of each row of x [batch, heads, len, dim]. Padding becomes 0 and
// is not read; empty `lengths`: no padding.
Var unit_rows(const Var& x, double factor, const std::vector<int64_t>& lengths);
// The gate "beta" of each head and position.
GateInput beta_gate();
// σ(beta) of the gate [batch, heads, len, 1]; padding is not read.
Var write_strength(const Var& beta, const std::vector<int64_t>& lengths);
// Of unit_rows() for queries and keys, and of write_strength().
void add_delta_cost(const AttentionShape& shape, Cost& cost);
// The same of one head and position; the strength is in gate number `gate`.
void set_delta(const StateRows& rows, int64_t head_dim, size_t gate, real factor);

// The outputs in double, from log-decays [batch, heads, len, 1 or head_dim], or no numbers for no
// decay, and the gate of the strength.
oracle::Array delta_reference(const ReferenceInputs& x, const oracle::Array& log_decay,
                              const oracle::Array& beta);

}  // namespace attn
