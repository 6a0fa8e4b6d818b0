// Differentiable ops on heads [batch, heads, len, dim] between their projections and attention:
// rotary positions, and keys and values shared by several query heads. Wrong shapes are Errors.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// Cosines and sines of rotary positions, [positions, dim]: the pair (2c, 2c + 1) of row i is (cos,
// sin) of i·base^(-2c/dim). Su et al. 2021, arXiv:2104.09864, eqs. 15 and 34.
Tensor rotary_table(int64_t positions, int64_t dim, double base = 10000);

// Position i is rotated by row `first` + i of the table, neighbouring numbers (2c, 2c + 1) as a
// plane; the last one of an odd dim stays. Dot products of rotated rows depend on the difference of
// their positions alone.
Var rotate(const Var& a, const Tensor& table, int64_t first = 0);

// Each head `times` times, side by side: query head h finds key head h / times.
Var repeat_heads(const Var& a, int64_t times);

}  // namespace attn
