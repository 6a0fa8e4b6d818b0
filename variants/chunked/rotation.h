// Retention's rotation of queries and keys by their positions, and a factor for each row. Sun et
// al. 2023, arXiv:2307.08621, eqs. 3-5. One pass over memory each way.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// Row i is (cos, sin) of i·10000^(-c/(pairs - 1)) for each pair of columns c: angles from 1 to
// 1/10000, both included, where rotary_table() of ops_heads.h ends before. [positions, dim].
Tensor rotation_table(int64_t positions, int64_t dim);

// Rotates each pair (2c, 2c + 1) of position i of x [batch, heads, len, dim] by row i of the table,
// and multiplies by factors [heads, positions], if defined. If dim is odd, the last number is not
// rotated.
Var rotate_rows(const Var& x, const Tensor& table, const Tensor& factors = {});
// The same for one row in place.
void rotate_row(const real* table_row, real factor, int64_t dim, real* row);

}  // namespace attn
