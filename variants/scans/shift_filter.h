// A causal filter of a few taps for each channel, in the layout of heads: what a state space does
// that holds the last rows (the shift SSM of Fu et al. 2023, arXiv:2212.14052, section 3.1). Costs
// 2·n·taps FLOPs a channel.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// Of a channel: one for each tap and position that it sees.
double shift_filter_flops(int64_t len, int64_t count);

// y_t = skip ⊙ x_t + Σ_j taps_j ⊙ x_{t-j}; x [batch, heads, len, dim], taps [heads, count, dim],
// skip [heads, dim], or undefined for 0. Positions before the first hold zeros.
Var shift_filter(const Var& x, const Var& taps, const Var& skip);

// The row of one position of one head. `last` is the row of x at hand, behind the rows before it,
// of which `seen` can be read, itself among them; taps [count, dim] and skip [dim] of the head,
// null for 0.
void filter_row(int64_t count, int64_t dim, const real* last, int64_t seen, const real* taps,
                const real* skip, real* to);

}  // namespace attn
