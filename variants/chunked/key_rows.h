// Rows of queries and keys as delta rules want them: of length 1 (Yang et al. 2024,
// arXiv:2406.06484), and the written keys of RWKV-7 (Peng et al. 2025, arXiv:2503.14456). One pass
// over memory each way.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

inline constexpr double kUnitEpsilon = 1e-6;  // added to the square of a row's length

// factor·y/√(|y|² + kUnitEpsilon) of each row of x [batch, heads, len, dim], with y = x, or with
// gains [heads, dim], y = gains⊙x. Padding becomes 0 and is not read; empty `lengths`: no padding.
Var unit_rows(const Var& x, double factor, const std::vector<int64_t>& lengths,
              const Var& gains = {});
// The same in place, for one row; gains [dim] or null.
void unit_row(real factor, const real* gains, int64_t dim, real* row);

// k ⊙ (1 + (a - 1)⊙gains), k and a [batch, heads, len, dim], gains [heads, dim].
Var replaced_keys(const Var& k, const Var& a, const Var& gains);

}  // namespace attn
