// Differentiable ops on heads [batch, heads, len, dim] between projection and attention: rotary
// position embedding, and keys and values that several query heads share. A wrong shape is an
// Error.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// The cosines and sines of rotary position embedding, [positions, dim]. The pair (2c, 2c + 1) of
// row i is (cos, sin) of i·base^(-2c/dim). Su et al. 2021, arXiv:2104.09864, eqs. 15 and 34.
Tensor rotary_table(int64_t positions, int64_t dim, double base = 10000);

// Rotates each pair (2c, 2c + 1) of position i by the angle in row `first` + i of the table. If dim
// is odd, the last number is unchanged. Dot products of rotated rows depend on the difference of
// their positions alone.
Var rotate(const Var& a, const Tensor& table, int64_t first = 0);

// Repeats each head `times` times: head h of the result is head h / times of `a`.
Var repeat_heads(const Var& a, int64_t times);

}  // namespace attn
